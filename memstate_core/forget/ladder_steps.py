"""The steps that the ladder takes by features of topics, fields and edges. Nothing here reads or writes a store."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.forget.attenuation import detached_edges, detached_fields, summaries
from memstate_core.forget.ladder_decisions import edge_decisions, field_decisions, topic_decisions
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.decisions import ARCHIVED, ATTACHED, DETACHED, EXPANDED, RESTORED, SUMMARISED
from memstate_core.state.fold.ladder_state import LadderState
from memstate_core.state.graph import REVISION, Graph


@dataclass(frozen=True)
class Steps:
    """What the ladder decided in a run: rows that take a step or reverse it, with salience and reason."""

    archived: pl.DataFrame
    restored: pl.DataFrame
    detached_fields: pl.DataFrame
    attached_fields: pl.DataFrame
    detached_edges: pl.DataFrame
    attached_edges: pl.DataFrame
    summarised: pl.DataFrame
    expanded: pl.DataFrame

    def decisions(self, keep: int) -> pl.DataFrame:
        """All steps as decisions (columns DECISION)."""
        return pl.concat(
            [
                topic_decisions(self.restored, RESTORED),
                topic_decisions(self.archived, ARCHIVED),
                field_decisions(self.detached_fields, DETACHED),
                field_decisions(self.attached_fields, ATTACHED),
                edge_decisions(self.detached_edges, DETACHED),
                edge_decisions(self.attached_edges, ATTACHED),
                field_decisions(self.summarised, SUMMARISED, keep),
                field_decisions(self.expanded, EXPANDED),
            ]
        )

    def counts(self) -> dict[str, int]:
        """How many topics, fields and edges took each step."""
        return {
            "archived": self.archived.height,
            "restored": self.restored.height,
            "summarised": self.summarised.height,
            "expanded": self.expanded.height,
            "detached": self.detached_fields.height + self.detached_edges.height,
            "attached": self.attached_fields.height + self.attached_edges.height,
        }


def steps_due(
    topics: pl.DataFrame,
    ranked: pl.DataFrame,
    fields: pl.DataFrame,
    edges: pl.DataFrame,
    ladder: LadderState,
    policy: Policy,
) -> Steps:
    """The steps that policy asks for, and the reversals of those that it no longer asks for.

    Args:
        topics: the columns of `topic_features.governed`.
        ranked: which of them are archived, as `archiving.to_archive` gives it.
        fields: columns topic_id, name, salience, revisions (how many the full history has).
        edges: all edges, those out of force among them (columns from_id, to_id, kind).
        ladder: the ladder state by earlier decisions.
        policy: how many revisions a summary keeps.
    """
    leaving = ranked.filter(pl.col("reason").is_not_null())
    was = topics.select("topic_id", "was")
    archived = leaving.join(was, on="topic_id").filter(pl.col("was") == "active")
    back = topics.filter((pl.col("was") == "archived") & (pl.col("state") == "active"))
    restored = back.join(leaving, on="topic_id", how="anti").with_columns(
        by=pl.when("has_new_evidence").then(pl.lit("evidence")).otherwise(pl.lit("access")),
        reason=pl.when("has_new_evidence").then(pl.lit("new evidence names it")).otherwise(pl.lit("it was accessed")),
    )
    fields_down, fields_up = detached_fields(fields, topics, ladder)
    edges_down, edges_up = detached_edges(edges, topics, ladder)
    shortened, expanded = summaries(fields, topics, ladder, policy)
    return Steps(archived, restored, fields_down, fields_up, edges_down, edges_up, shortened, expanded)


def history_lengths(graph: Graph) -> pl.DataFrame:
    """The length of each field's full history (columns topic_id, name, revisions)."""
    rows = graph.read(REVISION, ["topic_id", "name", "summarises"], "r.part = 'field'")
    return rows.group_by("topic_id", "name").agg(revisions=pl.col("summarises").fill_null(1).sum())
