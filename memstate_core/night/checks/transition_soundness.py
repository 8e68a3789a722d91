"""C2: transitions are sound.

Every state and flag follows from a recorded decision, policy justifies each decision of the last run, and no
superseded value became current.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.derived import in_force
from memstate_core.night.checks.ladder_decisions import ladder_violations, recorded_steps
from memstate_core.night.checks.merge_decisions import merge_violations
from memstate_core.night.checks.statements import SLOT
from memstate_core.state.fold import decisions as kinds

_FIELD = ["topic_id", "name"]
_EDGE = ["from_id", "to_id", "kind"]


def transition_soundness(checked: CheckedState, base: pl.DataFrame | None, missing: str | None = None) -> Check:
    """Checks states, flags and decisions, and compares current values with the base.

    Args:
        checked: the state.
        base: the revisions of the snapshot that the run started from, those behind summaries among them.
        missing: why there are none to compare with, if the ledger records a base.
    """
    last = checked.recorded.last
    other = last.filter(pl.col("policy") != checked.recorded.policy.digest())
    found = [
        *_states(checked),
        *_marks(checked),
        *merge_violations(checked),
        *ladder_violations(checked),
        violating(other, "kind", "decided under another policy than that of the run"),
    ]
    if base is not None:
        found.append(
            violating(_revived(checked.graph.revisions, base), "topic_id", "a superseded value became current")
        )
    return check("C2", found, [f"current values not checked against the base: {missing}"] if missing else [])


def _states(checked: CheckedState) -> list[pl.DataFrame]:
    derived, topics = checked.derived, checked.graph.topics
    rows = checked.recorded.transitions.sort("seq")
    archived = in_force(rows, ["topic_id"], kinds.ARCHIVED, kinds.RESTORED)["topic_id"].implode()
    pins = in_force(rows, ["topic_id"], kinds.PINNED, kinds.UNPINNED)
    pinned = pins.select(derived.answering(pl.col("topic_id")))["topic_id"].implode()
    known = topics.join(derived.survivors, left_on="id", right_on="dropped", how="left")
    merged, living = pl.col("survivor").is_not_null(), checked.graph.living["id"].implode()
    target = pl.col("merged_into").is_in(living) & (pl.col("merged_into") != pl.col("survivor"))
    gone = derived.survivors.join(topics, left_on="dropped", right_on="id", how="anti")
    due = pl.when(merged).then(pl.lit("merged")).when(pl.col("id").is_in(archived)).then(pl.lit("archived"))
    pin = ~merged & pl.col("id").is_in(pinned)
    return [
        violating(derived.circular, "dropped", "its merges lead in a circle"),
        violating(
            known.filter(pl.col("state") != due.otherwise(pl.lit("active"))),
            "id",
            "its state follows from no recorded decision",
        ),
        violating(known.filter(merged & target), "id", "it leads to another topic than its merges say"),
        violating(gone, "dropped", "a merged topic left no tombstone"),
        violating(known.filter(pl.col("pinned") != pin), "id", "its pin follows from no recorded decision"),
    ]


def _marks(checked: CheckedState) -> list[pl.DataFrame]:
    steps = recorded_steps(checked.recorded.transitions)
    fields = steps.explode("fields", empty_as_null=True).rename({"fields": "name"})
    edge = pl.col("edges").struct
    edges = steps.explode("edges", empty_as_null=True).filter(pl.col("edges").is_not_null())
    edges = edges.with_columns(from_id="topic_id", to_id=edge.field("to"), of=edge.field("kind"))
    off = in_force(fields, _FIELD, kinds.DETACHED, kinds.ATTACHED).select(_FIELD)
    cut = in_force(edges, ["from_id", "to_id", "of"], kinds.DETACHED, kinds.ATTACHED)
    cut = cut.select("from_id", "to_id", kind="of")
    wrong = [
        _contradicting(checked.graph.fields, off, _FIELD).select(id="topic_id"),
        _contradicting(checked.graph.edges, cut, _EDGE).select(id="from_id"),
    ]
    short = in_force(fields, _FIELD, kinds.SUMMARISED, kinds.EXPANDED)
    return [
        violating(pl.concat(wrong), "id", "what is detached follows from no recorded decision"),
        violating(_unasked_summaries(checked, short), "topic_id", "a history is summarised without a decision or need"),
    ]


def _contradicting(rows: pl.DataFrame, off: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    marked = rows.join(off.with_columns(_off=True), on=key, how="left")
    return marked.filter(pl.col("detached") != pl.col("_off").fill_null(False))


def _unasked_summaries(checked: CheckedState, asked: pl.DataFrame) -> pl.DataFrame:
    """Summaries that no decision asks for, of histories within the policy's length."""
    revisions = checked.graph.revisions
    total = pl.concat([revisions.filter(pl.col("summarises").is_null()), checked.compressed])
    length = total.filter(pl.col("part") == "field").group_by(_FIELD).agg(_length=pl.len())
    summaries = revisions.filter(pl.col("summarises").is_not_null()).join(asked, on=_FIELD, how="anti")
    both = summaries.join(length, on=_FIELD, how="left")
    return both.filter(pl.col("_length").fill_null(0) <= checked.recorded.policy.max_field_history)


def _revived(now: pl.DataFrame, base: pl.DataFrame) -> pl.DataFrame:
    """Current revisions that the base had below a newer one which still exists.

    Revisions with the same valid time do not supersede each other, so a change of `conflict_rule` may select
    another of them.
    """
    top = base.filter(pl.col("rank") == 0).select(*SLOT, _was="id", _since="valid_from")
    below = base.join(top, on=SLOT).filter(pl.col("valid_from") < pl.col("_since"))
    current = now.filter(pl.col("rank") == 0)
    back = current.join(below.select("id", *SLOT, "_was"), on=["id", *SLOT])
    return back.join(now.select(*SLOT, _was="id"), on=[*SLOT, "_was"], how="semi")
