"""The topics that prompts may contain: those that exist, and those that this run has extracted so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from memstate_core.embed.encoder import Vectors
from memstate_core.model.frames import Schema
from memstate_core.model.text import normalised
from memstate_core.placement.vectors import Embeddings

_LONGEST_SUMMARY = 300
_FIELDS_SHOWN = 12

CARDS: Schema = {
    "id": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "fields": pl.List(pl.Struct({"name": pl.String, "value_json": pl.String})),
}
"""The parts of a topic that prompts contain: title, summary and current values."""


Stated = tuple[str, str, str]
"""A scope, the title of a topic in the form in which titles are compared, and the name of a field that it states."""


class Card(Struct, frozen=True):
    """A topic in a prompt, under a handle that is valid in one conversation only."""

    handle: str
    topic_id: str
    title: str
    summary: str | None
    fields: list[dict[str, str]]

    def shown(self) -> dict[str, Any]:
        """The card as JSON data."""
        values = {one["name"]: (one["value_json"] or "null")[:_LONGEST_SUMMARY] for one in self.fields[:_FIELDS_SHOWN]}
        summary = (self.summary or "")[:_LONGEST_SUMMARY]
        return {"handle": self.handle, "title": self.title, "summary": summary, "fields": values}


class KnownTopics:
    """Topics with vectors and cards; it grows during a run."""

    def __init__(self, topics: Embeddings, cards: pl.DataFrame) -> None:
        """Starts with the existing topics.

        Args:
            topics: ids, scopes and vectors.
            cards: columns CARDS; topics without a card are never returned.
        """
        self.topics = topics
        self._cards = cards
        self._stating: dict[Stated, str] = {}
        self._index(cards, pl.DataFrame({"id": topics.ids, "scope": topics.scopes}))

    def nearest(self, scope: str, vectors: Vectors, limit: int) -> list[Card]:
        """The topics of a scope that are nearest to any of the vectors, nearest first, with handles K1, K2 ….

        Args:
            scope: the scope.
            vectors: unit vectors (float32, n x d).
            limit: the most topics.
        """
        own = (self.topics.scopes == scope).to_numpy()
        if not own.any() or not limit or not len(vectors):
            return []
        cosines = np.round((self.topics.vectors[own] @ vectors.T).max(axis=1).astype(np.float64), 6)
        ranked = pl.DataFrame({"id": self.topics.ids.filter(pl.Series(own)), "score": cosines})
        best = ranked.sort("score", "id", descending=[True, False]).head(limit)
        rows = best.join(self._cards, on="id", how="inner", maintain_order="left").iter_rows(named=True)
        return [
            Card(f"K{at}", row["id"], row["title"], row["summary"], row["fields"]) for at, row in enumerate(rows, 1)
        ]

    def stating(self, names: Sequence[Stated]) -> str | None:
        """The topic with one of these titles and fields, the first of several by id."""
        return min((found for name in names if (found := self._stating.get(name))), default=None)

    @property
    def titles(self) -> pl.DataFrame:
        """Titles of the topics (columns id, title)."""
        return self._cards.select("id", "title")

    def add(self, scope: str, cards: pl.DataFrame, vectors: Vectors) -> None:
        """Adds extracted topics of a scope.

        Args:
            scope: the scope.
            cards: columns CARDS.
            vectors: unit vectors, in the order of the cards (float32, n x d).
        """
        known = self.topics
        self.topics = Embeddings(
            pl.concat([known.ids, cards["id"]]),
            pl.concat([known.scopes, pl.Series([scope] * cards.height, dtype=pl.String)]),
            np.concatenate([known.vectors, vectors]),
        )
        self._cards = pl.concat([self._cards, cards])
        self._index(cards, cards.select("id", scope=pl.lit(scope)))

    def _index(self, cards: pl.DataFrame, scopes: pl.DataFrame) -> None:
        named = cards.select("id", "fields", title=normalised(pl.col("title"))).explode("fields").join(scopes, on="id")
        rows = named.select("scope", "title", name=pl.col("fields").struct.field("name"), topic="id").drop_nulls()
        for scope, title, name, topic in rows.sort("topic", descending=True).iter_rows():
            self._stating[scope, title, name] = min(topic, self._stating.get((scope, title, name), topic))
