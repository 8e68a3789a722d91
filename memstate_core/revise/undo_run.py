"""Undo of a whole run: its merges and steps of forgetting that are still in force, as one set of decisions.

A step is one of the run if it would not be in force without the run's decisions: what another run decided too stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import polars as pl

from memstate_core.forget.manual_actions import existing, reversals
from memstate_core.model.errors import RunUnknown
from memstate_core.model.ledger_tables import DECISION
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.unmerge import UNDONE, unmerge_decisions
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import (
    ARCHIVED,
    ATTACHED,
    DETACHED,
    EXPANDED,
    JUDGED,
    MERGED,
    PINNED,
    READMITTED,
    RESHARDED,
    RESTORED,
    REVIEW_ENDED,
    SET_ASIDE,
    SUMMARISED,
    UNMERGED,
    UNPINNED,
)
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from memstate_core.state.fold.rollbacks import ROLLED_BACK

_REVERSED = "undone or reversed before, or in force by another run too"
_LEFT = {
    **dict.fromkeys((MERGED, ARCHIVED, DETACHED, SUMMARISED), _REVERSED),
    **dict.fromkeys((UNMERGED, RESTORED, ATTACHED, EXPANDED), "it reversed another decision, which can be given again"),
    **dict.fromkeys((PINNED, UNPINNED), "pins are changed by `memstate pin`"),
    JUDGED: "a verdict is changed by `memstate review`",
    SET_ASIDE: "a row that a run could not digest is readmitted by `memstate undo ID`",
    READMITTED: "the next run sets the row aside if it cannot digest it",
    REVIEW_ENDED: "a person confirmed these topics",
    RESHARDED: "the number of shards is changed back by `memstate reshard N`",
    ROLLED_BACK: "a rollback is reversed by `memstate rollback N`",
}
"""Why decisions of a run stay, by kind. Kinds that are not listed follow from the evidence or decide nothing."""


@dataclass(frozen=True)
class RunUndo:
    """What undoing a run gives in one shard.

    Attributes:
        decisions: the decisions to record (columns DECISION); none if nothing is left to undo.
        undone: how many decisions of the run they undo, by kind.
        left: how many decisions of the run stay, by kind.
    """

    decisions: pl.DataFrame
    undone: dict[str, int]
    left: dict[str, int]


def undo_run(shards: Mapping[str, Served], run_id: str) -> dict[str, RunUndo]:
    """What undoing a run gives, by shard; shards in which it decided nothing are left out.

    Raises:
        RunUnknown: no decision of such a run is on record.
    """
    found = {shard: _of_shard(served, run_id) for shard, served in shards.items() if _is_known(served, run_id)}
    if not found:
        raise RunUnknown(run_id, ", ".join(served.snapshot.name for served in shards.values()))
    return found


def why_left(kind: str) -> str:
    """Why decisions of a kind stay when their run is undone."""
    return _LEFT[kind]


def _is_known(served: Served, run_id: str) -> bool:
    return any(run_id in rows["run_id"] for rows in (served.transitions, served.rolled_back))


def _of_shard(served: Served, run_id: str) -> RunUndo:
    own = served.transitions.filter(pl.col("run_id") == run_id)
    in_force = merge_list(served).filter(~pl.col("undone") & (pl.col("run_id") == run_id))
    ladder = existing(served, _steps_of(served.transitions, run_id))
    back = reversals(served, ladder, UNDONE)
    undone = pl.concat([in_force.with_columns(kind=pl.lit(MERGED)).select("kind"), *_steps(own, ladder)])
    every = pl.concat([own, served.rolled_back.filter(pl.col("run_id") == run_id).select(own.columns)])
    counts, all_counts = _counts(undone), _counts(every.filter(pl.col("kind").is_in(list(_LEFT))))
    left = {kind: rest for kind, count in all_counts.items() if (rest := count - counts.get(kind, 0)) > 0}
    merges = [unmerge_decisions(served, in_force)] if in_force.height else []
    return RunUndo(pl.concat([*merges, back.select(DECISION.keys())]), counts, left)


def _steps_of(transitions: pl.DataFrame, run_id: str) -> LadderState:
    """The steps in force that would not be without a run; pins and holds among them."""
    now, without = (ladder_state(rows) for rows in (transitions, transitions.filter(pl.col("run_id") != run_id)))
    parts = [(field.name, getattr(now, field.name), getattr(without, field.name)) for field in fields(LadderState)]
    keys = {name: [column for column in rows.columns if column != "keep"] for name, rows, _ in parts}
    return LadderState(**{name: rows.join(other, on=keys[name], how="anti") for name, rows, other in parts})


def _steps(own: pl.DataFrame, ladder: LadderState) -> Sequence[pl.DataFrame]:
    """The run's decisions of which a step is reversed (column kind), one row a decision."""
    targets = (
        (ARCHIVED, ladder.archived["topic_id"]),
        (DETACHED, pl.concat([ladder.fields["topic_id"], ladder.edges["from_id"]])),
        (SUMMARISED, ladder.summaries["topic_id"]),
    )
    return [
        own.filter((pl.col("kind") == kind) & pl.col("topic_id").is_in(ids.implode())).select("kind")
        for kind, ids in targets
    ]


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    return dict(rows["kind"].value_counts().sort("kind").iter_rows())
