"""Overlays answers with accepted but unpublished observations, marked as pending.

An observation that names a topic of the answer is listed under that topic's `pending`; one whose text matches the
question and that its filters let through is appended to the evidence; a topic that it would create is appended to the
candidates. Published values are never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from cachetools import LRUCache
from msgspec import json as msgjson

from memstate_core.embed.encoder import Vectors
from memstate_core.model.terms import question_terms
from memstate_core.model.text import iso_expr
from memstate_core.retrieve.index.evidence import DETAILS, details, is_record
from memstate_core.retrieve.query import Question, evidence_filter
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store
from memstate_core.serve.pending.fair_share import SCOPE_ROWS
from memstate_core.serve.pending.unpublished import Unpublished, UnpublishedView
from memstate_core.serve.snapshots.generation import Generation

Document = dict[str, Any]

MATCHING_WORDS, MATCHING_MEANING = 0.3, 0.4
"""Thresholds for a pending text to match: the share of the question's terms (weighted by rarity in the scope), or the
cosine. Unrelated sentences seldom have a cosine above 0.3 in the packaged model."""

EMBEDDED_A_QUESTION = 8
"""How many pending texts a question embeds at most, newest first; vectors are cached, so the next question embeds the
next ones. Until then the others match by their terms."""

_EMBEDDED_CHARACTERS = 1000
SHOWN_AT_A_TOPIC = 20
"""The maximum number of pending observations listed under a topic, newest first."""

PENDING_STATE = "pending"
_OWN = ["observation_id", "kind", "actor", "session_id", "text", "title", "summary", "topic_kind"]
_DIGITS = 6


class Pending:
    """The thread-safe overlay of a store."""

    def __init__(self, store: Store) -> None:
        self._view = UnpublishedView(store)
        self._keeping = threading.Lock()
        self._vectors: LRUCache[str, Vectors] = LRUCache(SCOPE_ROWS)

    def note(self, name: str, lines: bytes, now: datetime) -> None:
        """Keeps acknowledged lines of a file in the inbox."""
        self._view.inbox.note(name, lines, now)

    def waiting(self, now: datetime) -> pl.DataFrame:
        """The observations in the inbox (columns EVIDENCE), the newest first, within the limits."""
        return self._view.inbox.observations(now).rows

    def topics(
        self, readers: Sequence[SnapshotReader], ids: Collection[str], scopes: Collection[str] | None, now: datetime
    ) -> set[tuple[str, str]]:
        """The topics with some ids, as scope and id, that pending observations of some scopes would create."""
        rows = _within(self._view.of(readers, now), scopes, None).filter(~pl.col("is_served"))
        return set(rows.filter(pl.col("topic").is_in(list(ids))).select("scope", "topic").iter_rows())

    def overlay(self, generation: Generation, document: Document, question: Question, now: datetime) -> Document:
        """Adds pending data to an answer, in place.

        Args:
            generation: the generation of the answer.
            document: the answer.
            question: the question, with the scopes that the caller may read.
            now: the current time.
        """
        unpublished = self._view.of(generation.readers, now)
        rows = _within(unpublished, question.scopes, question.as_of)
        candidates = document["candidates"]
        known = [candidate["topic_id"] for candidate in candidates]
        if question.topic_ids:
            rows = rows.filter(pl.col("topic").is_in([*known, *question.topic_ids]))
        matched = self._matched(generation, rows, unpublished, question)
        at_topics = _at_topics(rows.filter(pl.col("topic").is_in(known)), question)
        for candidate in candidates:
            candidate["pending"] = at_topics.get(candidate["topic_id"], [])
        document["candidates"] += _made(rows, matched, question)
        document["evidence"] += _evidence(_asked_for(matched, question).head(question.evidence_k))
        document["pending"] = {"observations": rows.height, "complete": unpublished.is_complete(question.scopes)}
        return document

    def at_topic(
        self,
        generation: Generation,
        topic_id: str,
        scopes: Collection[str] | None,
        as_of: datetime | None,
        now: datetime,
    ) -> tuple[list[Document], Document | None]:
        """The pending observations of one topic, and the topic as a candidate if no snapshot has it."""
        rows = _within(self._view.of(generation.readers, now), scopes, as_of).filter(pl.col("topic") == topic_id)
        question = Question("", as_of=as_of)
        made = _made(rows, rows.with_columns(score=pl.lit(0.0), cosine=pl.lit(None, pl.Float64)), question)
        return _at_topics(rows, question).get(topic_id, []), made[0] if made else None

    def _matched(
        self, generation: Generation, rows: pl.DataFrame, unpublished: Unpublished, question: Question
    ) -> pl.DataFrame:
        """The rows that match by text, best first, with `score` (0 to 1) and `cosine`."""
        shares = _word_shares(generation, rows, unpublished.terms, question_terms(question.text))
        cosines = self._cosines(generation, rows, question) if "semantic" in question.stages else {}
        cosine = pl.Series("cosine", [cosines.get(each) for each in rows["evidence_id"]], pl.Float64)
        scored = rows.join(shares, on="evidence_id", how="left", maintain_order="left").with_columns(
            cosine, pl.col("share").fill_null(0.0)
        )
        matches = (pl.col("share") >= MATCHING_WORDS) | (pl.col("cosine") >= MATCHING_MEANING).fill_null(False)
        best = scored.filter(matches & ~is_record()).with_columns(score=pl.max_horizontal("share", "cosine"))
        return best.sort("score", "imported_at", "evidence_id", descending=True)

    def _cosines(self, generation: Generation, rows: pl.DataFrame, question: Question) -> dict[str, float]:
        """The cosine between the question and each text that has a vector by now."""
        with self._keeping:
            lacking = rows.filter(~pl.col("evidence_id").is_in(list(self._vectors))).head(EMBEDDED_A_QUESTION)
        texts = [text[:_EMBEDDED_CHARACTERS] for text in lacking["shown"].fill_null("")]
        encoder = generation.encoder
        asked, *fresh = encoder.encode([*encoder.questions([question.text]), *encoder.passages(texts)])
        with self._keeping:
            self._vectors.update(zip(lacking["evidence_id"], fresh, strict=True))
            ids = [each for each in rows["evidence_id"] if each in self._vectors]
            vectors = [self._vectors[each] for each in ids]
        return dict(zip(ids, (np.stack(vectors) @ asked).tolist(), strict=True)) if ids else {}


def record_of(candidate: Document) -> Document:
    """The record of a topic that no snapshot has: nothing but its pending data."""
    own = ("scope", "title", "summary", "topic_kind", "salience", "failed_salience", "state", "warnings", "pending")
    unknown = ("embedding_model", "text_hash", "merged_into", "created_at", "updated_at", "stale")
    return (
        {"id": candidate["topic_id"], "archived": False, "pinned": False, "fields": {}, "edges": []}
        | {name: candidate[name] for name in own}
        | dict.fromkeys(unknown)
    )


def _within(unpublished: Unpublished, scopes: Collection[str] | None, as_of: datetime | None) -> pl.DataFrame:
    rows = unpublished.rows if scopes is None else unpublished.rows.filter(pl.col("scope").is_in(list(scopes)))
    return rows if as_of is None else rows.filter(pl.col("observed_at") <= as_of)


def _word_shares(generation: Generation, rows: pl.DataFrame, terms: pl.DataFrame, asked: list[str]) -> pl.DataFrame:
    """The share of the question's terms in each row (columns evidence_id, share), by their weight in its scope."""
    homes = {scope: reader for reader in generation.readers for scope in reader.scopes}
    scopes = rows["scope"].unique().sort().to_list()
    even = np.ones(len(asked))
    parts = [
        pl.DataFrame(
            {"term": asked, "weight": homes[scope].evidence(scope).terms.weights(asked) if scope in homes else even}
        ).with_columns(pl.col("weight") / pl.col("weight").sum(), scope=pl.lit(scope))
        for scope in scopes
    ]
    if not parts or not asked:
        return pl.DataFrame(schema={"evidence_id": pl.String, "share": pl.Float64})
    found = (
        rows.select("evidence_id", "scope").join(terms, on="evidence_id").join(pl.concat(parts), on=["scope", "term"])
    )
    return found.group_by("evidence_id").agg(share=pl.col("weight").sum())


def _at_topics(rows: pl.DataFrame, question: Question) -> dict[str, list[Document]]:
    """Pending observations by the topic that they name, newest first."""
    found: dict[str, list[Document]] = {}
    kept = rows.group_by("topic", maintain_order=True).head(SHOWN_AT_A_TOPIC)
    for row in kept.with_columns(iso_expr(pl.col("observed_at"))).to_dicts():
        fields = _fields(row["fields"] or [], row["observed_at"], question)
        entry = {name: row[name] for name in _OWN} | {"topic_id": row["topic"], "observed_at": row["observed_at"]}
        found.setdefault(row["topic"], []).append(entry | {"fields": fields, "pending": True})
    return found


def _fields(fields: list[Document], observed_at: str, question: Question) -> list[Document]:
    """The requested values of an observation, without those after the requested time."""
    values = []
    for field in fields:
        since = field["valid_from"]
        is_later = question.as_of is not None and since is not None and since > question.as_of
        if is_later or (question.field_names and field["name"] not in question.field_names):
            continue
        values.append(
            {
                "name": field["name"],
                "value": msgjson.decode(field["value_json"]),
                "field_type": field["field_type"],
                "valid_from": observed_at if since is None else since.isoformat().replace("+00:00", "Z"),
                "why_changed": field["why_changed"],
                "confidence": field["confidence"],
            }
        )
    return values


def _made(rows: pl.DataFrame, matched: pl.DataFrame, question: Question) -> list[Document]:
    """Candidates for topics that no snapshot has: those that match by text or were requested by id."""
    fresh = ~pl.col("is_served") & pl.col("topic").is_not_null()
    named = rows.filter(fresh & pl.col("topic").is_in(list(question.topic_ids)))["topic"].unique(maintain_order=True)
    best = matched.filter(fresh).unique("topic", keep="first", maintain_order=True)
    similarity = dict(best.select("topic", "cosine").iter_rows())
    topics = list(dict.fromkeys([*named, *best["topic"]]))[: question.top_k]
    mine = rows.filter(pl.col("topic").is_in(topics))
    observed = _at_topics(mine, question)
    newest = pl.col("title", "summary", "topic_kind", "topic_key").drop_nulls().first()
    parts = mine.group_by("topic").agg(pl.col("scope").first(), newest)
    by_topic = {row["topic"]: row for row in parts.to_dicts()}
    return [_candidate(by_topic[topic], similarity.get(topic), observed[topic]) for topic in topics]


def _candidate(topic: Document, cosine: float | None, pending: list[Document]) -> Document:
    return {
        "topic_id": topic["topic"],
        "title": topic["title"] or topic["topic_key"] or topic["topic"],
        "summary": topic["summary"],
        "topic_kind": topic["topic_kind"],
        "scope": topic["scope"],
        "state": PENDING_STATE,
        "salience": None,
        "failed_salience": None,
        "similarity": None if cosine is None else round(cosine, _DIGITS),
        "neighbors": [],
        "fields": [],
        "warnings": [],
        "pending": pending,
    }


def _asked_for(matched: pl.DataFrame, question: Question) -> pl.DataFrame:
    """The rows that the filters of a question let through, with the details of events (columns DETAILS)."""
    detailed, wanted = matched.with_columns(**details()), evidence_filter(question)
    return detailed if wanted is None else detailed.filter(wanted)


def _evidence(matched: pl.DataFrame) -> list[Document]:
    rows = matched.select(
        "observation_id",
        pl.col("score").round(_DIGITS),
        "actor",
        "session_id",
        "kind",
        *DETAILS,
        iso_expr(pl.col("observed_at")),
        text="shown",
        topic_id="topic",
        pending=pl.lit(True),
    )
    return [{name: value for name, value in row.items() if name not in DETAILS or value} for row in rows.to_dicts()]
