"""The fold: from evidence and recorded decisions to topics, fields, histories and edges.

Everything the graph holds follows from here, so a rebuild, a nightly run, a merge and its undoing are the
same function of the ledger (laws L2, L3, L4). No clock, no model, no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.embed.vector_cache import text_hash
from memstate_core.model.frames import Schema, conform, empty, project
from memstate_core.model.graph_tables import EDGES, FIELDS, TOPICS
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.model.step_frames import PROBLEMS
from memstate_core.model.text import embedding_text
from memstate_core.policy.overrides import value_for
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.assertions import assertions
from memstate_core.state.fold.edges import fold_edges
from memstate_core.state.fold.history import fields as fold_fields
from memstate_core.state.fold.history import in_order, topic_parts
from memstate_core.state.fold.history import revisions as fold_revisions
from memstate_core.state.fold.holdings import Holdings, holdings
from memstate_core.state.fold.identity import answering
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from memstate_core.state.fold.strength import strength
from memstate_core.state.fold.summaries import summarised
from memstate_core.state.fold.tombstones import tombstone_names
from memstate_core.state.fold.usage_events import access_events, topic_events

_LATER = (
    "salience", "failed_salience", "embedding_model", "text_hash", "archived", "pinned", "merged_into", "summary",
    "strength", "reinforced_at", "half_life_days", "failed_strength",
)  # fmt: skip
"""Columns of topics that later steps set, that only tombstones have, or that tombstones do not have."""
_NAMED = {
    "topic_id": pl.String, "_key": pl.String,
    **{name: TOPICS[name] for name in ("scope", "title", "summary", "topic_kind", "created_at", "updated_at")},
}  # fmt: skip


@dataclass(frozen=True)
class State:
    """A shard's logical state.

    Attributes:
        topics: columns TOPICS, tombstones among them; salience and embedding model still null.
        fields: columns FIELDS; salience still null.
        revisions: columns REVISIONS, summary revisions at the ends of histories that were summarised.
        compressed: the revisions that summaries replace (columns REVISIONS).
        edges: columns EDGES.
        evidence_topic: the topic of each piece of evidence after merges (columns EVIDENCE_TOPIC).
        aliases: columns ALIASES, followed through merges.
        problems: columns PROBLEMS: refused evidence, dangling references and edges.
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    revisions: pl.DataFrame
    compressed: pl.DataFrame
    edges: pl.DataFrame
    evidence_topic: pl.DataFrame
    aliases: pl.DataFrame
    problems: pl.DataFrame

    def beside(self) -> dict[str, pl.DataFrame]:
        """What the graph does not hold, by the name under which a run keeps it."""
        named = {name: getattr(self, name) for name in ("aliases", "problems", "compressed")}
        return {"links": self.evidence_topic, **named}


def fold(
    evidence: pl.DataFrame,
    placements: pl.DataFrame,
    aliases: pl.DataFrame,
    decisions: pl.DataFrame,
    policy: Policy,
    accesses: pl.DataFrame | None = None,
    until: datetime | None = None,
) -> State:
    """Folds a shard.

    Args:
        evidence: all of it (columns EVIDENCE).
        placements: where each piece belongs before merges (columns PLACEMENTS).
        aliases: ids that titles would have (columns ALIASES).
        decisions: recorded decisions in their order (at least columns DECISION).
        policy: weights, half-life and the rule for conflicts.
        accesses: recorded accesses (columns ACCESSES); none if omitted.
        until: fold the state as of this moment: without assertions that became true later, and with topics, events
            of salience and edges from evidence observed by then. The caller leaves out later decisions and accesses.
    """
    held = holdings(placements, aliases, decisions)
    return fold_topics(evidence, held, ladder_state(decisions), policy, accesses, until)


def fold_topics(
    evidence: pl.DataFrame,
    held: Holdings,
    ladder: LadderState,
    policy: Policy,
    accesses: pl.DataFrame | None = None,
    until: datetime | None = None,
) -> State:
    """Folds the topics that some holdings are about: all of a shard, or some of it (`Holdings.of`).

    A topic's state depends on its own evidence, segments, accesses and decisions, and on which topics there are.

    Args:
        evidence: that of the topics (columns EVIDENCE); more changes nothing.
        held: what belongs to the topics.
        ladder: the steps in force.
        policy: weights, half-life and the rule for conflicts.
        accesses: those of the topics (columns ACCESSES); more changes nothing, none if omitted.
        until: as for `fold`.
    """
    aliases, followed, evidence_topic = held.aliases, held.followed, held.evidence_topic
    placed = evidence.join(evidence_topic.select("evidence_id", _topic="topic_id"), on="evidence_id")
    placed = _by(placed, "observed_at", until)
    ordered = _by(in_order(assertions(evidence, evidence_topic, held.moved_segments), policy), "valid_from", until)
    histories = fold_revisions(ordered)
    scopes = placed.select("scope", topic_id="_topic").unique("topic_id")
    used = access_events(empty(ACCESSES) if accesses is None else accesses, aliases, followed, scopes, policy)
    topics = _topics(placed, histories, used, policy)
    half_lives = topics.select(topic_id="id", half_life=value_for("salience_half_life_days", policy))
    fields = fold_fields(ordered, histories, used, half_lives, policy, until)
    names = tombstone_names(held.merged, evidence, held.placements, held.segments, aliases, policy)
    tombstones = _tombstones(held.merged, names, followed, placed)
    topics = _with_ladder(pl.concat([topics, tombstones]), ladder, followed)
    there = topics.select("id", "scope") if held.known is None else held.known
    edges, dangling = fold_edges(evidence, evidence_topic, held.moved_segments, there, aliases, followed, until)
    fields, lost = _with_references(fields, there, aliases, followed)
    kept, compressed = summarised(histories, ladder.summaries, policy)
    return State(
        topics=topics,
        fields=_detached(fields, ladder.fields, FIELDS),
        revisions=kept,
        compressed=compressed,
        edges=_detached(edges, ladder.edges, EDGES),
        evidence_topic=evidence_topic,
        aliases=held.answering_aliases,
        problems=pl.concat([refused(held.placements), lost, dangling]),
    )


def _by(rows: pl.DataFrame, column: str, until: datetime | None) -> pl.DataFrame:
    return rows if until is None else rows.filter(pl.col(column) <= until)


def refused(placements: pl.DataFrame) -> pl.DataFrame:
    """Evidence without a topic (columns PROBLEMS)."""
    refused = placements.filter(pl.col("topic_id").is_null()).sort("evidence_id")
    detail = pl.format("evidence {} has no topic: {}", "evidence_id", "reason")
    return project(refused.select(kind=pl.lit("refused_placement"), detail=detail), PROBLEMS, nulls=("topic_id",))


def _topics(placed: pl.DataFrame, histories: pl.DataFrame, used: pl.DataFrame, policy: Policy) -> pl.DataFrame:
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
    named = project(
        spans.join(topic_parts(histories), on="topic_id", how="left"), _NAMED, nulls=("title", "summary", "topic_kind")
    )
    half_lives = named.select("topic_id", half_life=value_for("salience_half_life_days", policy))
    events = topic_events(own.select("topic_id", at="observed_at"), used, policy).join(half_lives, on="topic_id")
    joined = named.join(strength(events, ["topic_id"], policy), on="topic_id", how="left")
    return _finished(joined.rename({"topic_id": "id"}), title=("title", "_key", "id"), state="active")


def _tombstones(
    merged: pl.DataFrame, names: pl.DataFrame, followed: pl.DataFrame, placed: pl.DataFrame
) -> pl.DataFrame:
    if merged.is_empty():
        return empty(TOPICS)
    ends = followed.rename({"dropped": "id", "survivor": "merged_into"})
    ended = merged.select("scope", id="dropped").join(ends, on="id").join(names, on="id")
    spans = placed.group_by(merged_into="_topic").agg(
        created_at=pl.col("observed_at").min(), updated_at=pl.col("observed_at").max()
    )
    return _finished(ended.join(spans, on="merged_into", how="left"), title=("title", "id"), state="merged")


def _finished(rows: pl.DataFrame, *, title: tuple[str, ...], state: str) -> pl.DataFrame:
    rows = rows.with_columns(title=pl.coalesce(name for name in title if name in rows.columns), state=pl.lit(state))
    rows = project(rows, TOPICS, nulls=_LATER).with_columns(archived=pl.lit(False))
    alive = pl.col("merged_into").is_null()
    hashed = pl.when(alive).then(text_hash(embedding_text(pl.col("title"), pl.col("summary"))))
    return rows.with_columns(text_hash=hashed)


def _with_ladder(topics: pl.DataFrame, ladder: LadderState, followed: pl.DataFrame) -> pl.DataFrame:
    alive = pl.col("state") != "merged"
    archived = alive & pl.col("id").is_in(ladder.archived["topic_id"].implode())
    pins = ladder.pins.select(pl.col("topic_id").replace(followed["dropped"], followed["survivor"]))["topic_id"]
    return topics.with_columns(
        state=pl.when(archived).then(pl.lit("archived")).otherwise("state"),
        archived=archived,
        pinned=alive & pl.col("id").is_in(pins.implode()),
    )


def _detached(rows: pl.DataFrame, detached: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    if detached.is_empty():
        return conform(rows.with_columns(detached=pl.lit(False)), schema)
    marked = rows.drop("detached").join(detached.with_columns(detached=True), on=detached.columns, how="left")
    return conform(marked.with_columns(pl.col("detached").fill_null(False)), schema)


def _with_references(
    fields: pl.DataFrame, scopes: pl.DataFrame, aliases: pl.DataFrame, followed: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
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
        detail=pl.format("field {} refers to {}, which is not a topic of this scope", "name", "ref_topic_id"),
    )
    kept = pl.when("_lost").then("ref_topic_id").otherwise("_to")
    return project(pointed.with_columns(ref_state=state, ref_topic_id=kept), FIELDS), conform(lost, PROBLEMS)
