"""The topics whose state may differ from an earlier fold of the same shard under the same policy.

A topic is folded again if its evidence, segments, accesses or decisions changed, or if another topic that it may name
came, went or resolves otherwise. All others have the state that they had.

Invariant: a topic that is not named here has the same rows in both folds. Naming one too many costs time only.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import symmetric_difference
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.holdings import Holdings, known_topics
from memstate_core.state.fold.identity import survivors

_WITHOUT_EFFECT = (
    "placed", "topic_created", "topic_updated", decided.MOVED, decided.JUDGED, decided.PAIR_SUGGESTED,
    decided.PAIR_WITHDRAWN, decided.MATCH_MODEL, decided.REVIEW_QUEUED, decided.REVIEW_ENDED, decided.PUBLISHED,
    decided.ACCEPTED, decided.KEPT_APART, decided.RESHARDED,
)  # fmt: skip
"""Decisions that a fold does not read."""


@dataclass(frozen=True)
class EarlierFold:
    """What an earlier fold was made of.

    Attributes:
        evidence_topic: the topic of each piece of evidence (columns EVIDENCE_TOPIC), none without a topic.
        aliases: columns ALIASES, merges followed.
        merged: the merges in force (as of `decisions.merges`).
        problems: what it left open (columns PROBLEMS).
        compressed: the revisions that its summaries replace (columns REVISIONS).
        decided: the decisions since (columns DECISION), no rollback among them.
        accessed: ids that accesses name which only one of the folds reads.
    """

    evidence_topic: pl.DataFrame
    aliases: pl.DataFrame
    merged: pl.DataFrame
    problems: pl.DataFrame
    compressed: pl.DataFrame
    decided: pl.DataFrame
    accessed: pl.Series


@dataclass(frozen=True)
class ChangedTopics:
    """The topics to fold again.

    Attributes:
        living: ids of those that were not merged into others.
        owners: ids of all whose rows may differ, those that are gone and tombstones among them.
    """

    living: pl.Series
    owners: pl.Series


def changed_topics(earlier: EarlierFold, now: Holdings, known: pl.DataFrame, named: pl.DataFrame) -> ChangedTopics:
    """The topics to fold again.

    Args:
        earlier: what the earlier fold was made of.
        now: the holdings of all topics, of evidence that there is.
        known: every topic (as of `known_topics`).
        named: what topics name in the state of the earlier fold: the ends of edges, and references (columns
            topic_id, to_id).
    """
    moved = _resolving_otherwise(earlier, now, known)
    open_ends = earlier.problems.filter(pl.col("topic_id").is_not_null())["topic_id"]
    naming = named.filter(pl.col("to_id").is_in(moved.implode()))["topic_id"]
    ids = [moved, naming, *([open_ends] if len(moved) else []), *_with_other_content(earlier, now)]
    changed = pl.DataFrame({"id": pl.concat(ids)}).unique()
    owners = pl.concat([changed["id"], changed.select(now.answering(pl.col("id")))["id"]]).unique()
    finals = owners.filter(~owners.is_in(now.followed["dropped"].implode()))
    into = now.followed.filter(pl.col("survivor").is_in(finals.implode()))["dropped"]
    return ChangedTopics(living=finals, owners=pl.concat([owners, into]).unique())


def _resolving_otherwise(earlier: EarlierFold, now: Holdings, known: pl.DataFrame) -> pl.Series:
    """Ids that came or went, or that resolve to another topic, with those that they resolved to before and do now."""
    merges = symmetric_difference(earlier.merged, now.merged)
    aliases = symmetric_difference(earlier.aliases, now.answering_aliases)
    topics = symmetric_difference(known_topics(earlier.evidence_topic, earlier.merged), known)
    ids = pl.concat([merges["dropped"], merges["survivor"], aliases["alias"], aliases["topic_id"], topics["id"]])
    before = survivors(earlier.merged)
    rows = pl.DataFrame({"id": ids}).unique()
    was, becomes = (pl.col("id").replace(each["dropped"], each["survivor"]) for each in (before, now.followed))
    return pl.concat([rows["id"], rows.select(was)["id"], rows.select(becomes)["id"]]).unique()


def _with_other_content(earlier: EarlierFold, now: Holdings) -> list[pl.Series]:
    """Ids of topics with other evidence, segments, accesses or decisions."""
    links = symmetric_difference(earlier.evidence_topic, now.evidence_topic)
    read = ~pl.col("kind").is_in(_WITHOUT_EFFECT)
    return [links["topic_id"], earlier.decided.filter(read)["topic_id"].drop_nulls(), earlier.accessed]
