"""The fold: from evidence and recorded decisions to topics, fields, histories and links.

Everything the graph holds follows from here, so a rebuild, a nightly run, a merge and its undoing are the
same function of the ledger (laws L2, L3, L4). No clock, no model, no file.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.embed.cache import text_hash
from memstate_core.forget.decay import strength
from memstate_core.model.frames import FIELDS, PROBLEMS, TOPICS, conform
from memstate_core.model.text import embedding_text
from memstate_core.policy.settings import Policy
from memstate_core.state import decisions as decided
from memstate_core.state.assertions import from_evidence, from_segments
from memstate_core.state.edges import fold_edges
from memstate_core.state.history import fields as fold_fields
from memstate_core.state.history import in_order, topic_parts
from memstate_core.state.history import revisions as fold_revisions
from memstate_core.state.resolve import answering, survivors
from memstate_core.state.tombstones import tombstone_names


@dataclass(frozen=True)
class State:
    """A shard's logical state.

    Attributes:
        topics: columns TOPICS, tombstones among them; salience and embedding model still null.
        fields: columns FIELDS; salience still null.
        revisions: columns REVISIONS.
        edges: columns EDGES.
        links: the topic that each piece of evidence ended up in (columns evidence_id, scope, topic_id).
        aliases: columns ALIASES, followed through merges.
        problems: columns PROBLEMS: refused evidence, dangling references and edges.
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    revisions: pl.DataFrame
    edges: pl.DataFrame
    links: pl.DataFrame
    aliases: pl.DataFrame
    problems: pl.DataFrame


def fold(
    evidence: pl.DataFrame,
    placements: pl.DataFrame,
    aliases: pl.DataFrame,
    decisions: pl.DataFrame,
    policy: Policy,
) -> State:
    """Folds a shard.

    Args:
        evidence: all of it (columns EVIDENCE).
        placements: where each piece belongs before merges (columns PLACEMENTS).
        aliases: ids that titles would have (columns ALIASES).
        decisions: recorded decisions in their order (at least columns DECISION).
        policy: weights, half-life and the rule for conflicts.
    """
    merged = decided.merges(decisions)
    followed = survivors(merged)
    moved = answering(pl.col("topic_id"), aliases, followed)
    links = placements.filter(pl.col("topic_id").is_not_null()).select("evidence_id", "scope", topic_id=moved)
    segments = decided.segments(decisions)
    placed = evidence.join(links.select("evidence_id", _topic="topic_id"), on="evidence_id")
    recorded = placed.group_by(topic_id="_topic").agg(recorded_at=pl.col("imported_at").min())
    stretches = from_segments(segments.with_columns(topic_id=moved), recorded)
    ordered = in_order(pl.concat([from_evidence(evidence, links.drop("scope")), stretches]), policy)
    histories = fold_revisions(ordered)
    topics = _topics(placed, histories, policy)
    names = tombstone_names(merged, evidence, placements, segments, aliases, policy)
    tombstones = _tombstones(merged, names, followed, placed)
    topics = _with_ladder(pl.concat([topics, tombstones]), decided.ladder(decisions))
    edges, dangling = fold_edges(evidence, links, topics, aliases, followed)
    fields, lost = _with_references(fold_fields(ordered, histories, policy), topics, aliases, followed)
    resolved = aliases.with_columns(topic_id=answering(pl.col("alias"), aliases, followed))
    return State(topics, fields, histories, edges, links, resolved, pl.concat([_refused(placements), lost, dangling]))


def _refused(placements: pl.DataFrame) -> pl.DataFrame:
    refused = placements.filter(pl.col("topic_id").is_null()).sort("evidence_id")
    detail = pl.format("evidence {} has no topic: {}", "evidence_id", "reason")
    return conform(refused.select(kind=pl.lit("refused_placement"), detail=detail), PROBLEMS)


def _topics(placed: pl.DataFrame, histories: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    own = placed.drop("topic_id", "title", "summary", "topic_kind").rename({"_topic": "topic_id"})
    spans = (
        own.sort("topic_id", "observed_at", "evidence_id")
        .group_by("topic_id", maintain_order=True)
        .agg(
            pl.col("scope").first(),
            created_at=pl.col("observed_at").min(),
            updated_at=pl.col("observed_at").max(),
            _key=pl.col("topic_key").drop_nulls().first(),
        )
    )
    strengths = strength(own.select("topic_id", at="observed_at"), ["topic_id"], policy)
    joined = spans.join(topic_parts(histories), on="topic_id", how="left").join(strengths, on="topic_id", how="left")
    return _finished(joined.rename({"topic_id": "id"}), title=("title", "_key", "id"), state="active")


def _tombstones(
    merged: pl.DataFrame, names: pl.DataFrame, followed: pl.DataFrame, placed: pl.DataFrame
) -> pl.DataFrame:
    ends = followed.rename({"dropped": "id", "survivor": "merged_into"})
    ended = merged.select("scope", id="dropped").join(ends, on="id").join(names, on="id")
    spans = placed.group_by(merged_into="_topic").agg(
        created_at=pl.col("observed_at").min(), updated_at=pl.col("observed_at").max()
    )
    return _finished(ended.join(spans, on="merged_into", how="left"), title=("title", "id"), state="merged")


def _finished(rows: pl.DataFrame, *, title: tuple[str, ...], state: str) -> pl.DataFrame:
    rows = rows.with_columns(title=pl.coalesce(name for name in title if name in rows.columns), state=pl.lit(state))
    rows = conform(rows, TOPICS).with_columns(archived=pl.lit(False))
    alive = pl.col("merged_into").is_null()
    hashed = pl.when(alive).then(text_hash(embedding_text(pl.col("title"), pl.col("summary"))))
    return rows.with_columns(text_hash=hashed)


def _with_ladder(topics: pl.DataFrame, ladder: pl.DataFrame) -> pl.DataFrame:
    stepped = topics.join(ladder.rename({"topic_id": "id", "state": "_step"}), on="id", how="left")
    alive = pl.col("state") != "merged"
    state = pl.when(alive & pl.col("_step").is_not_null()).then("_step").otherwise("state")
    return stepped.with_columns(state=state).with_columns(archived=pl.col("state") == "archived").drop("_step")


def _with_references(
    fields: pl.DataFrame, topics: pl.DataFrame, aliases: pl.DataFrame, followed: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    scopes = topics.select("id", "scope")
    pointed = (
        fields.with_columns(_to=answering(pl.col("ref_topic_id"), aliases, followed))
        .join(scopes.rename({"id": "topic_id"}), on="topic_id", how="left")
        .join(scopes.rename({"id": "_to", "scope": "_to_scope"}), on="_to", how="left")
        .with_columns(_lost=pl.col("_to").is_not_null() & (pl.col("scope") != pl.col("_to_scope")).fill_null(True))
    )
    state = pl.when("_lost").then(pl.lit("dangling")).when(pl.col("_to").is_not_null()).then(pl.lit("kept"))
    lost = pointed.filter("_lost").select(
        kind=pl.lit("dangling_reference"),
        topic_id="topic_id",
        detail=pl.format("field {} refers to {}, which is no topic of this scope", "name", "ref_topic_id"),
    )
    kept = pl.when("_lost").then("ref_topic_id").otherwise("_to")
    return conform(pointed.with_columns(ref_state=state, ref_topic_id=kept), FIELDS), conform(lost, PROBLEMS)
