"""Counts the terms of evidence and topics, and has them weighted."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from memstate_core.model.terms import terms
from memstate_core.model.text import embedding_text
from memstate_core.retrieve.index.bm25 import Runs, runs_of, term_key, weigh

EVIDENCE_FIELDS = ("turn", "window")
"""A piece of evidence as a document: alone, and with the adjacent turns."""

TOPIC_FIELDS = ("text",)
"""A topic as a document: its title and summary."""

_CHUNK = 50_000
_SLICE = 10_000


def evidence_terms(evidence: pl.DataFrame, layout: pl.DataFrame, members: pl.DataFrame) -> list[Runs]:
    """The term index of evidence, in the order of its scopes.

    Args:
        evidence: column text, in the order of the file.
        layout: `scope`, `first` and `count` of each scope's rows.
        members: the result of `window_members`.
    """
    texts = _numbered(evidence["text"])
    postings = [_weigh_evidence(texts[low:high], layout, members) for low, high in _chunks(layout)]
    whole = pl.concat(postings or [_weigh_evidence(texts, layout, members)])
    return [runs_of(whole, layout, EVIDENCE_FIELDS)]


def topic_terms(topics: pl.DataFrame, layout: pl.DataFrame) -> list[Runs]:
    """The term index of topics (columns scope, title, summary), in the order of their scopes."""
    texts = _numbered(topics.select(text=embedding_text(pl.col("title"), pl.col("summary")))["text"])
    return [runs_of(weigh(_counts(texts, "text"), layout, TOPIC_FIELDS), layout, TOPIC_FIELDS)]


def _numbered(texts: pl.Series) -> pl.DataFrame:
    return texts.to_frame("text").with_row_index("row")


def _chunks(layout: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """Ranges of about `_CHUNK` rows that split no scope; they bound memory."""
    ends = pl.col("first") + pl.col("count")
    ranges = layout.group_by(chunk=pl.col("first") // _CHUNK).agg(low=pl.col("first").min(), high=ends.max())
    yield from ranges.sort("low").select("low", "high").iter_rows()


def _counts(texts: pl.DataFrame, field: str) -> pl.DataFrame:
    """How often each text has each term: `row`, `key` and the count."""
    found = [terms(texts[low : low + _SLICE]) for low in range(0, max(texts.height, 1), _SLICE)]
    keyed = [part.select("row", key=term_key(pl.col("term"))) for part in found]
    return pl.concat(part.group_by("row", "key").agg(pl.len().alias(field)) for part in keyed)


def _weigh_evidence(texts: pl.DataFrame, layout: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    alone = _counts(texts, "turn").with_columns(window="turn")
    beside = alone.join(members, left_on="row", right_on="member")
    beside = beside.select("key", "window", row="row_right", turn=pl.lit(0, pl.UInt32))
    return weigh(pl.concat([alone, beside.select(alone.columns)]), layout, EVIDENCE_FIELDS)
