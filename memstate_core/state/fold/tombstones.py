"""Titles and kinds of topics that were merged away: those that their own evidence alone gives.

A title as of the merge would depend on earlier merges; the title from the topic's own evidence is the same
whether a chain of merges was decided in one run or over many.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import empty, project
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.assertions import from_evidence, from_segments
from memstate_core.state.fold.history import in_order, revisions, topic_parts
from memstate_core.state.fold.identity import owning


def tombstone_names(
    merged: pl.DataFrame,
    evidence: pl.DataFrame,
    placements: pl.DataFrame,
    segments: pl.DataFrame,
    aliases: pl.DataFrame,
    policy: Policy,
) -> pl.DataFrame:
    """Title and kind of each dropped topic.

    They are those that the topic would have alone: by the rule of `history`, else its key, else its id. A
    topic whose evidence has all moved to the owner of its title keeps the recorded names.

    Args:
        merged: columns dropped, dropped_title, dropped_kind; one row a dropped topic.
        evidence: columns EVIDENCE.
        placements: where each piece belongs before merges (columns PLACEMENTS).
        segments: columns SEGMENTS, as recorded.
        aliases: columns ALIASES.
        policy: orders assertions.

    Returns:
        Columns id, title, topic_kind.
    """
    if merged.is_empty():
        return empty(_NAMED)
    owner = owning(pl.col("topic_id"), aliases)
    dropped = owner.is_in(merged["dropped"].implode())
    evidence_topic = placements.filter(dropped).select("evidence_id", topic_id=owner)
    own = evidence.join(evidence_topic.select("evidence_id"), on="evidence_id", how="semi")
    own_segments = segments.filter(dropped).with_columns(topic_id=owner)
    alone = _alone(own, evidence_topic, own_segments, policy)
    named = merged.select("dropped_title", "dropped_kind", id="dropped").join(alone, on="id", how="left")
    title = (
        pl.when("_has_evidence").then(pl.coalesce("title", "_key", "id")).otherwise(pl.coalesce("dropped_title", "id"))
    )
    kind = pl.when("_has_evidence").then("topic_kind").otherwise("dropped_kind")
    return named.select("id", title=title, topic_kind=kind)


def _alone(own: pl.DataFrame, evidence_topic: pl.DataFrame, segments: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Titles and kinds from this evidence alone (columns id, title, topic_kind, _key, _has_evidence)."""
    keys = own.select("evidence_id", "observed_at", "topic_key").join(evidence_topic, on="evidence_id")
    own_evidence = keys.sort("observed_at", "evidence_id").group_by("topic_id", maintain_order=True)
    recorded = own_evidence.agg(recorded_at=pl.col("observed_at").min())
    ordered = in_order(pl.concat([from_evidence(own, evidence_topic), from_segments(segments, recorded)]), policy)
    parts = project(topic_parts(revisions(ordered)), _NAMES, nulls=("title", "topic_kind"))
    first = own_evidence.agg(_key=pl.col("topic_key").drop_nulls().first(), _has_evidence=pl.lit(True))
    return first.join(parts, on="topic_id", how="left").rename({"topic_id": "id"})


_NAMED = {"id": pl.String, "title": pl.String, "topic_kind": pl.String}
_NAMES = dict.fromkeys(("topic_id", "title", "topic_kind"), pl.String)
