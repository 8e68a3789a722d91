"""Counts the terms of evidence and topics and has them weighed and written. Ranking is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from memstate_core.model.text import embedding_text
from memstate_core.retrieve.lexical import weigh, write_postings
from memstate_core.retrieve.words import terms

EVIDENCE_FIELDS = ("turn", "window")
"""A piece of evidence as a document: alone, and together with the turns beside it."""

TOPIC_FIELDS = ("text",)
"""A topic as a document: its title and summary."""

_CHUNK = 100_000


def write_evidence_words(
    folder: Path, evidence: pl.DataFrame, layout: pl.DataFrame, members: pl.DataFrame
) -> pl.DataFrame:
    """Writes the word index of evidence.

    Args:
        folder: where to.
        evidence: columns scope and text, in the order of the file.
        layout: `scope`, `first` and `count`, where each scope's rows lie.
        members: what `window_members` answered.

    Returns:
        `scope`, `first` and `count`, where each scope's terms lie.
    """
    texts = _numbered(evidence.select("scope", "text"))
    postings = [_weigh_evidence(texts[low:high], layout, members) for low, high in _chunks(layout)]
    return write_postings(folder, pl.concat(postings or [_weigh_evidence(texts, layout, members)]), EVIDENCE_FIELDS)


def write_topic_words(folder: Path, topics: pl.DataFrame, layout: pl.DataFrame) -> pl.DataFrame:
    """Writes the word index of topics (columns scope, title, summary); answers its layout."""
    texts = _numbered(topics.select("scope", text=embedding_text(pl.col("title"), pl.col("summary"))))
    counts = terms(texts).group_by("scope", "row", "term").agg(text=pl.len())
    return write_postings(folder, weigh(counts, layout, TOPIC_FIELDS), TOPIC_FIELDS)


def _numbered(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.with_columns(row=pl.int_range(pl.len(), dtype=pl.UInt32))


def _chunks(layout: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """Ranges of about `_CHUNK` rows that part no scope, so that memory stays bounded."""
    ends = pl.col("first") + pl.col("count")
    ranges = layout.group_by(chunk=pl.col("first") // _CHUNK).agg(low=pl.col("first").min(), high=ends.max())
    yield from ranges.sort("low").select("low", "high").iter_rows()


def _weigh_evidence(texts: pl.DataFrame, layout: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    alone = terms(texts).group_by("scope", "row", "term").agg(turn=pl.len()).with_columns(window="turn")
    beside = alone.join(members, left_on="row", right_on="member").select(
        "scope", "term", "window", row="row_right", turn=pl.lit(0, pl.UInt32)
    )
    counts = pl.concat([alone, beside.select(alone.columns)]).group_by("scope", "row", "term").sum()
    return weigh(counts, layout, EVIDENCE_FIELDS)
