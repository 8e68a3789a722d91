"""What belongs to each topic: evidence and segments, by placement, title aliases and merges in force.

It is the part of a fold that needs a whole shard, and the cheap one. `fold.fold_topics` makes topics of it, all or
some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.identity import across_scopes, answering, homes, survivors


@dataclass(frozen=True)
class Holdings:
    """What belongs to topics.

    Attributes:
        placements: where evidence belongs before merges (columns PLACEMENTS).
        aliases: ids that titles would have (columns ALIASES), merges not followed.
        merged: the merges in force (as of `decisions.merges`).
        followed: each dropped topic with its last survivor (columns dropped, survivor).
        segments: recorded segments (columns SEGMENTS), merges not followed.
        evidence_topic: the topic of each piece of evidence after merges (columns EVIDENCE_TOPIC).
        known: every topic of the shard (columns id, scope) if these are the holdings of some; None for those of all.
    """

    placements: pl.DataFrame
    aliases: pl.DataFrame
    merged: pl.DataFrame
    followed: pl.DataFrame
    segments: pl.DataFrame
    evidence_topic: pl.DataFrame
    known: pl.DataFrame | None = None

    @cached_property
    def moved_segments(self) -> pl.DataFrame:
        """The segments (columns SEGMENTS) with the topics that hold them after merges."""
        return self.segments.with_columns(topic_id=self.answering(pl.col("topic_id")))

    @cached_property
    def answering_aliases(self) -> pl.DataFrame:
        """The aliases (columns ALIASES), followed through merges."""
        return self.aliases.with_columns(topic_id=self.answering(pl.col("alias")))

    def answering(self, ids: pl.Expr) -> pl.Expr:
        """The topic that an id resolves to."""
        return answering(ids, self.aliases, self.followed)

    def of(self, topics: pl.Series, known: pl.DataFrame) -> Holdings:
        """The holdings of some living topics, and of those that were merged into them.

        Args:
            topics: their ids.
            known: every topic of the shard (as of `known_topics`).
        """
        own = pl.col("topic_id").is_in(topics.implode())
        into = self.followed.filter(pl.col("survivor").is_in(topics.implode()))
        evidence_topic = self.evidence_topic.filter(own)
        return replace(
            self,
            placements=self.placements.join(evidence_topic, on="evidence_id", how="semi", maintain_order="left"),
            merged=self.merged.filter(pl.col("dropped").is_in(into["dropped"].implode())),
            segments=self.segments.filter(self.answering(pl.col("topic_id")).is_in(topics.implode())),
            evidence_topic=evidence_topic,
            known=known,
        )


def holdings(placements: pl.DataFrame, aliases: pl.DataFrame, decisions: pl.DataFrame) -> Holdings:
    """The holdings of all topics of a shard (arguments as for `fold.fold`)."""
    merged = decided.merges(decisions)
    merged = merged.join(across_scopes(merged, homes(placements)), on="dropped", how="anti", maintain_order="left")
    followed = survivors(merged)
    moved = answering(pl.col("topic_id"), aliases, followed)
    evidence_topic = placements.filter(pl.col("topic_id").is_not_null()).select("evidence_id", "scope", topic_id=moved)
    return Holdings(placements, aliases, merged, followed, decided.segments(decisions), evidence_topic)


def known_topics(evidence_topic: pl.DataFrame, merged: pl.DataFrame) -> pl.DataFrame:
    """Every topic (columns id, scope), tombstones among them.

    Args:
        evidence_topic: columns EVIDENCE_TOPIC, of evidence that there is.
        merged: the merges in force (at least columns dropped and scope).
    """
    living = evidence_topic.select(id="topic_id", scope="scope").unique("id", keep="any")
    return pl.concat([living, merged.select(id="dropped", scope="scope")])
