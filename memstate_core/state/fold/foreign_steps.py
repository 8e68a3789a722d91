"""Steps of the ladder and pins on topics that another scope owns by now: decisions that reverse them.

A topic's id belongs to the scope whose key, title or placement makes it, so an id that one scope gave a topic may
belong to another scope later. What the one decided about it must not act on the topic of the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from memstate_core.model.frames import empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.fold.decisions import ATTACHED, EXPANDED, RESTORED, UNPINNED
from memstate_core.state.fold.ladder_state import STEPS, LadderState, ladder_state

_REASON = "its id belongs to a topic of another scope now"


def reversed_across_scopes(decisions: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """Decisions (columns DECISION) that reverse the steps in force which one scope took on a topic of another.

    They have the scope of the steps, so that the same is not reversed again.

    Args:
        decisions: recorded decisions in their order (at least columns DECISION).
        homes: the scope of each topic that has evidence (columns topic_id, scope), before merges.
    """
    steps = decisions.filter(pl.col("kind").is_in([*STEPS, *STEPS.values()]))
    owned = steps.join(homes.rename({"scope": "_home"}), on="topic_id", how="left", maintain_order="left")
    foreign = owned.filter((pl.col("_home") != pl.col("scope")).fill_null(False)).drop("_home")
    by_scope = foreign.partition_by("scope", maintain_order=True)
    return pl.concat([empty(DECISION), *(each for rows in by_scope for each in _reversals(rows))])


def _reversals(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The decisions that reverse what is in force among the steps of one scope."""
    for kind, targets in _targets(ladder_state(rows)):
        parts = [name for name in targets.columns if name != "topic_id"]
        payload = pl.struct(*parts, actor=pl.lit("placements")).struct.json_encode()
        said = targets.sort("topic_id").with_columns(
            kind=pl.lit(kind), scope=pl.lit(rows["scope"][0]), payload_json=payload, reason=pl.lit(_REASON)
        )
        yield project(said, DECISION, nulls=("evidence_ids",))


def _targets(ladder: LadderState) -> Iterator[tuple[str, pl.DataFrame]]:
    fields, edges = pl.col("name").sort(), pl.struct(to="to_id", kind="kind").sort()
    yield RESTORED, ladder.archived
    yield ATTACHED, ladder.fields.group_by("topic_id").agg(fields=fields)
    yield ATTACHED, ladder.edges.group_by(topic_id="from_id").agg(edges=edges)
    yield EXPANDED, ladder.summaries.group_by("topic_id").agg(fields=fields)
    yield UNPINNED, ladder.pins
