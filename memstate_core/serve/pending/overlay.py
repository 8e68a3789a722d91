"""Answers with what was accepted and is not published yet laid over them, marked as pending.

An observation that names a topic of the answer stands at that topic under `pending`; one whose text matches the
question is added to the evidence, after what is published; a topic that it would make is added to the
candidates, after those that are served. Nothing pending is mixed into published values.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from cachetools import LRUCache
from msgspec import json as msgjson

from memstate_core.embed.encoder import Vectors
from memstate_core.model.terms import question_terms
from memstate_core.model.text import iso_expr
from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store
from memstate_core.serve.pending.inbox_view import ROWS_LIMIT
from memstate_core.serve.pending.unpublished import Unpublished, UnpublishedView
from memstate_core.serve.snapshots.generation import Generation

Document = dict[str, Any]

MATCHING_WORDS, MATCHING_MEANING = 0.3, 0.4
"""From which share of the question's words (weighed by how rare they are in the scope), or from which cosine with
it, a pending text matches. Unrelated sentences seldom have a cosine above 0.3 in the packaged model."""

EMBEDDED_A_QUESTION = 8
"""How many pending texts a question may have embedded, the newest first; vectors are kept, so the next question
embeds the next ones. Until then the others match by their words."""

_EMBEDDED_CHARACTERS = 1000
SHOWN_AT_A_TOPIC = 20
"""How many pending observations stand at a topic at most, the newest first."""

PENDING_STATE = "pending"
_OWN = ["observation_id", "kind", "actor", "session_id", "text", "title", "summary", "topic_kind"]
_DIGITS = 6


class Pending:
    """What is pending in a store, laid over answers; for several threads."""

    def __init__(self, store: Store) -> None:
        self._view = UnpublishedView(store)
        self._keeping = threading.Lock()
        self._vectors: LRUCache[str, Vectors] = LRUCache(ROWS_LIMIT)

    def note(self, name: str, lines: bytes) -> None:
        """Takes note of lines that were acknowledged as part of a file in the inbox."""
        self._view.inbox.note(name, lines)

    def topics(
        self, generation: Generation, ids: Collection[str], scopes: Collection[str] | None, now: datetime
    ) -> set[str]:
        """Those of the ids that name topics which pending observations of some scopes would make."""
        rows = _within(self._view.of(generation, now), scopes, None).filter(~pl.col("is_served"))
        return set(rows.filter(pl.col("topic").is_in(list(ids)))["topic"])

    def overlay(self, generation: Generation, document: Document, question: Question, now: datetime) -> Document:
        """The answer to a question with what is pending.

        Args:
            generation: what the answer is from.
            document: the answer; it is changed.
            question: its scopes are those that the caller may see.
            now: the machine's clock.
        """
        unpublished = self._view.of(generation, now)
        rows = _within(unpublished, question.scopes, question.as_of)
        candidates = document["candidates"]
        known = [candidate["topic_id"] for candidate in candidates]
        if question.topic_ids:
            rows = rows.filter(pl.col("topic").is_in([*known, *question.topic_ids]))
        matched = self._matched(generation, rows, unpublished, question)
        told = _at_topics(rows.filter(pl.col("topic").is_in(known)), question)
        for candidate in candidates:
            candidate["pending"] = told.get(candidate["topic_id"], [])
        document["candidates"] += _made(rows, matched, question)
        document["evidence"] += _evidence(matched.head(question.evidence_k))
        document["pending"] = {"observations": rows.height, "complete": unpublished.complete}
        return document

    def at_topic(
        self,
        generation: Generation,
        topic_id: str,
        scopes: Collection[str] | None,
        as_of: datetime | None,
        now: datetime,
    ) -> tuple[list[Document], Document | None]:
        """What is pending of one topic, and the topic as a candidate where no snapshot has it yet."""
        rows = _within(self._view.of(generation, now), scopes, as_of).filter(pl.col("topic") == topic_id)
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
        best = scored.filter(matches).with_columns(score=pl.max_horizontal("share", "cosine"))
        return best.sort("score", "imported_at", "evidence_id", descending=True)

    def _cosines(self, generation: Generation, rows: pl.DataFrame, question: Question) -> dict[str, float]:
        """The cosine of each text that has a vector by now with the question."""
        with self._keeping:
            lacking = rows.filter(~pl.col("evidence_id").is_in(list(self._vectors))).head(EMBEDDED_A_QUESTION)
        texts = [text[:_EMBEDDED_CHARACTERS] for text in lacking["shown"].fill_null("")]
        asked, *fresh = generation.encoder.encode([question.text, *texts])
        with self._keeping:
            self._vectors.update(zip(lacking["evidence_id"], fresh, strict=True))
            ids = [each for each in rows["evidence_id"] if each in self._vectors]
            vectors = [self._vectors[each] for each in ids]
        return dict(zip(ids, (np.stack(vectors) @ asked).tolist(), strict=True)) if ids else {}


def record_of(candidate: Document) -> Document:
    """A topic that no snapshot has yet, as the record of a topic: nothing but what is pending."""
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
    """Which share of the question's words each row has (columns evidence_id, share), by their weight in its scope."""
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
    """Pending observations by the topic that they name, the newest first."""
    told: dict[str, list[Document]] = {}
    kept = rows.group_by("topic", maintain_order=True).head(SHOWN_AT_A_TOPIC)
    for row in kept.with_columns(iso_expr(pl.col("observed_at"))).to_dicts():
        fields = _fields(row["fields"] or [], row["observed_at"], question)
        entry = {name: row[name] for name in _OWN} | {"topic_id": row["topic"], "observed_at": row["observed_at"]}
        told.setdefault(row["topic"], []).append(entry | {"fields": fields, "pending": True})
    return told


def _fields(fields: list[Document], observed_at: str, question: Question) -> list[Document]:
    """The values of an observation, without those that are not asked for or lie after the moment that is."""
    told = []
    for field in fields:
        since = field["valid_from"]
        is_later = question.as_of is not None and since is not None and since > question.as_of
        if is_later or (question.field_names and field["name"] not in question.field_names):
            continue
        told.append(
            {
                "name": field["name"],
                "value": msgjson.decode(field["value_json"]),
                "field_type": field["field_type"],
                "valid_from": observed_at if since is None else since.isoformat().replace("+00:00", "Z"),
                "why_changed": field["why_changed"],
                "confidence": field["confidence"],
            }
        )
    return told


def _made(rows: pl.DataFrame, matched: pl.DataFrame, question: Question) -> list[Document]:
    """Candidates for topics that no snapshot has: those that match by text, or that were asked for by name."""
    fresh = ~pl.col("is_served") & pl.col("topic").is_not_null()
    named = rows.filter(fresh & pl.col("topic").is_in(list(question.topic_ids)))["topic"].unique(maintain_order=True)
    best = matched.filter(fresh).unique("topic", keep="first", maintain_order=True)
    similarity = dict(best.select("topic", "cosine").iter_rows())
    topics = list(dict.fromkeys([*named, *best["topic"]]))[: question.top_k]
    mine = rows.filter(pl.col("topic").is_in(topics))
    told = _at_topics(mine, question)
    newest = pl.col("title", "summary", "topic_kind", "topic_key").drop_nulls().first()
    parts = mine.group_by("topic").agg(pl.col("scope").first(), newest)
    by_topic = {row["topic"]: row for row in parts.to_dicts()}
    return [_candidate(by_topic[topic], similarity.get(topic), told[topic]) for topic in topics]


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


def _evidence(matched: pl.DataFrame) -> list[Document]:
    rows = matched.select(
        "observation_id",
        pl.col("score").round(_DIGITS),
        "actor",
        "session_id",
        iso_expr(pl.col("observed_at")),
        text="shown",
        topic_id="topic",
        pending=pl.lit(True),
    )
    return rows.to_dicts()
