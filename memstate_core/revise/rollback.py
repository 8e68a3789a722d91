"""The decisions of a rollback: the state of an earlier publication counts again, and what was parted stays apart.

Three things that were learnt since are not lost by it: pairs whose merges were undone (also by the rollback), pairs
judged different, and new rows that no run could digest.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION, TRANSITIONS
from memstate_core.model.verdicts import DIFFERENT
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.unmerge import unmerge_decisions
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import JUDGED, KEPT_APART, PERSON, SET_ASIDE, merges, set_aside, undone
from memstate_core.state.fold.identity import survivors
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect

_VERDICT = pl.Struct({"a": pl.String, "b": pl.String, "verdict": pl.String})


@dataclass(frozen=True)
class Rollback:
    """What a rollback to a publication changes.

    Attributes:
        undone: the decisions that it undoes (columns TRANSITIONS).
        again: the decisions that an earlier rollback undid and that count again (columns TRANSITIONS).
        then: the decisions in effect at the publication (columns TRANSITIONS).
    """

    undone: pl.DataFrame
    again: pl.DataFrame
    then: pl.DataFrame

    @property
    def verdicts(self) -> pl.DataFrame:
        """The verdicts that it undoes (columns a, b, verdict): those that do not part topics."""
        return _verdicts(self.undone).filter(pl.col("verdict") != DIFFERENT).select("a", "b", "verdict")


def rollback_to(served: Served, seq: int, number: int) -> Rollback:
    """What a rollback of a shard changes.

    Args:
        served: the shard.
        seq: the transition of the publication whose state is served again.
        number: its snapshot. What a rollback to the same snapshot recorded itself is no change.
    """
    every = pl.concat([served.transitions, served.rolled_back.drop("rolled_back_at")]).sort("seq")
    then, now = in_effect(every.filter(pl.col("seq") <= seq)), served.transitions
    target = pl.col("payload_json").str.json_path_match("$.number")
    same = now.filter((pl.col("kind") == ROLLED_BACK) & (target == str(number)))["run_id"].implode()
    changed = now.join(then, on="seq", how="anti").filter(~pl.col("run_id").is_in(same))
    return Rollback(changed, then.join(now, on="seq", how="anti"), then)


def rollback_decisions(
    served: Served, change: Rollback, seq: int, number: int, digested: pl.Series, why: str
) -> pl.DataFrame:
    """The decisions to record (columns DECISION), the rollback itself first.

    Args:
        served: the shard.
        change: what the rollback changes.
        seq: the transition of the publication whose state is served again.
        number: the number of its snapshot.
        digested: the ids of the evidence and accesses that this snapshot was made of.
        why: the reason on record.
    """
    payload = msgjson.encode({"number": number, "seq": seq, "actor": PERSON}).decode()
    columns = {"kind": ROLLED_BACK, "payload_json": payload, "reason": why}
    mark = project(pl.DataFrame([columns]), DECISION, nulls=("scope", "topic_id", "evidence_ids"))
    return pl.concat([mark, _parted(served, change, why), _judged(change), _set_aside(served, change, digested)])


def _parted(served: Served, change: Rollback, why: str) -> pl.DataFrame:
    """Pairs whose merges are undone by now or by the rollback, without those that are one topic after it."""
    in_force = merge_list(served).filter(~pl.col("undone")).join(change.then, on="seq", how="anti")
    decided = pl.concat([served.transitions.select(DECISION.keys()), unmerge_decisions(served, in_force)])
    pairs = undone(decided).join(undone(change.then), on=["a", "b"], how="anti").filter(_two(change.then))
    none = pl.lit([], pl.List(pl.String))
    payload = pl.struct("weight", survivor="b", others=none, actor=pl.lit(PERSON)).struct.json_encode()
    rows = pairs.with_columns(kind=pl.lit(KEPT_APART), topic_id="a", payload_json=payload, reason=pl.lit(why))
    return project(rows.sort("a", "b"), DECISION)


def _judged(change: Rollback) -> pl.DataFrame:
    """The undone verdicts `different`, recorded again, without those on what is one topic after the rollback."""
    apart = _verdicts(change.undone).filter(pl.col("verdict") == DIFFERENT)
    return project(apart.filter(_two(change.then)), DECISION)


def _set_aside(served: Served, change: Rollback, digested: pl.Series) -> pl.DataFrame:
    """The rows that were set aside since and are not of the snapshot: the next run could not digest them either."""
    left_out = set_aside(served.transitions)
    open_rows = left_out.filter(~left_out.is_in(digested.implode()) & ~left_out.is_in(set_aside(change.then).implode()))
    rows = change.undone.filter(pl.col("kind") == SET_ASIDE)
    kept = pl.col("evidence_ids").list.set_intersection(open_rows.implode())
    return project(rows.with_columns(kept).filter(pl.col("evidence_ids").list.len() > 0), DECISION)


def _verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """Verdicts with what they say (columns TRANSITIONS, a, b, verdict)."""
    judged = rows.filter(pl.col("kind") == JUDGED).select(TRANSITIONS.keys())
    return judged.with_columns(_said=pl.col("payload_json").str.json_decode(_VERDICT)).unnest("_said")


def _two(then: pl.DataFrame) -> pl.Expr:
    """Whether `a` and `b` are two topics by some decisions."""
    followed = survivors(merges(then))
    one, other = (pl.col(end).replace(followed["dropped"], followed["survivor"]) for end in ("a", "b"))
    return one != other
