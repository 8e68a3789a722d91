"""What a reader caches of one scope: rows, vectors and terms, and values that every question derives from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.retrieve.index.bm25 import Postings, Scores
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.index.windows import MISSING, Floats, Ints
from memstate_core.retrieve.standard_scores import LENGTH_PRIOR, standardised
from memstate_core.retrieve.turns.coherence import context_weight
from memstate_core.retrieve.turns.edits import last_wordings
from memstate_core.retrieve.turns.shared_words import SharedWords
from memstate_core.retrieve.turns.speaker_names import SpeakerNames
from memstate_core.retrieve.turns.turn_traits import asking_shares, says_changed, text_lengths

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ScopeTerms:
    """The BM25 index of one scope."""

    postings: Postings
    first: int
    count: int
    documents: int

    def scores(self, terms: list[str]) -> Scores:
        """BM25 of every document of the scope, documents x fields."""
        return self.postings.scores(terms, first=self.first, count=self.count, documents=self.documents)

    def weights(self, terms: list[str]) -> Scores:
        """The weight of each term in this scope: its idf."""
        return self.postings.weights(terms, first=self.first, count=self.count, documents=self.documents)

    def rows(self, terms: list[str]) -> Rows:
        """The documents with any of the terms, ascending."""
        return self.postings.rows(terms, first=self.first, count=self.count)


@dataclass(frozen=True)
class EvidenceSlice:
    """The evidence of one scope.

    Attributes:
        frame: columns EVIDENCE_INDEX, n rows.
        vectors: the rows of the vector file from the scope's first to its last (float32, m x d).
        vector_rows: the row in `vectors` of each row, -1 without one (n).
        windows: the row before, the row after, the session's first row (n x 3).
        window_lengths: the length of each window's summed vectors (n).
        terms: BM25 over the fields `turn` and `window`.
    """

    frame: pl.DataFrame
    vectors: Floats
    vector_rows: npt.NDArray[np.int64]
    windows: Ints
    window_lengths: Floats
    terms: ScopeTerms

    @cached_property
    def years(self) -> list[int]:
        """The years of observation, ascending."""
        return self.frame["observed_at"].dt.year().drop_nulls().unique().sort().to_list()

    @cached_property
    def speakers(self) -> Rows:
        """A number for the actor of each row (n)."""
        return _ranks(self._actors)

    @cached_property
    def names(self) -> SpeakerNames:
        """The names of the actors, numbered as in `speakers`."""
        return SpeakerNames.of(self.frame)

    @cached_property
    def lengths(self) -> Scores:
        """The length of each text as the logarithm of its characters, NaN without text (n)."""
        return text_lengths(self.frame["text"])

    @cached_property
    def length_scores(self) -> Scores:
        """The standardised length of each text (n)."""
        return standardised(self.lengths, LENGTH_PRIOR)

    @cached_property
    def without_vector(self) -> Flags:
        """Which rows have no vector (n)."""
        return np.equal(self.vector_rows, MISSING)

    @cached_property
    def known_lengths(self) -> Floats:
        """The length of each window's summed vectors, NaN where none has one (n)."""
        return np.where(self.window_lengths > 0, self.window_lengths, np.nan)

    @cached_property
    def asking(self) -> Scores:
        """The share of the sentences of each text that ask (n)."""
        return asking_shares(self.frame["text"])

    @cached_property
    def context_weight(self) -> float:
        """How much the context of a turn counts, 0 to 1."""
        return context_weight(self.vectors, self.vector_rows, self.windows[:, 1], self.speakers)

    @cached_property
    def segments(self) -> Rows:
        """The segment of each row, numbered: rows of one topic in one session; a row without a topic is alone (n)."""
        return segment_numbers(self.frame["topic_id"], self.windows[:, 2])

    @cached_property
    def moments(self) -> Scores:
        """When each row was observed, in milliseconds; NaN where that is unknown (n)."""
        return self.frame["observed_at"].dt.epoch("ms").cast(pl.Float64).fill_null(np.nan).to_numpy()

    @cached_property
    def changes(self) -> Flags:
        """Whether each text says that something changed (n)."""
        return says_changed(self.frame["text"])

    @cached_property
    def last_wordings(self) -> Rows:
        """The row of the last wording of the message of each row, `MISSING` for that one and those never edited (n)."""
        return last_wordings(self.frame["observation_id"])

    @cached_property
    def shared_words(self) -> SharedWords:
        """The words that rows share."""
        return SharedWords(self.frame["text"], self.terms.weights)

    @cached_property
    def contradicting(self) -> dict[int, Rows]:
        """For rows that were asked for, the rows that may contradict each by naming the same thing."""
        return {}

    @cached_property
    def without_topic(self) -> Flags:
        """Which rows have no topic (n)."""
        return self.frame["topic_id"].is_null().to_numpy()

    @property
    def _actors(self) -> pl.Series:
        return self.frame["actor"].fill_null("")


@dataclass(frozen=True)
class TopicSlice:
    """Topics of one scope.

    Attributes:
        frame: columns TOPIC_COLUMNS, n rows.
        vectors: the vectors of their texts (float32, n x d), NaN without one.
        terms: BM25 over the titles and summaries of the served topics.
        term_rows: the row in `terms` of each topic, `MISSING` without one (n).
    """

    frame: pl.DataFrame
    vectors: Floats
    terms: ScopeTerms
    term_rows: Rows

    @cached_property
    def is_served(self) -> Flags:
        """Which topics a default query may return (n)."""
        return (self.frame["state"] == SERVED_STATE).to_numpy()

    @cached_property
    def columns(self) -> dict[str, pl.Series]:
        """The columns of the frame by name."""
        return {column.name: column for column in self.frame.get_columns()}

    @cached_property
    def descending_salience(self) -> list[float]:
        """What sorts the topics by descending salience, those without one first (n)."""
        return (-self.frame["salience"]).fill_null(-np.inf).to_list()

    @cached_property
    def ids(self) -> list[str]:
        """The id of each topic (n)."""
        return self.frame["id"].to_list()

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each topic by its id."""
        return {topic: row for row, topic in enumerate(self.ids)}


def taken(columns: Sequence[pl.Series], rows: Rows) -> list[tuple[Any, ...]]:
    """Some rows of a frame's columns, as tuples.

    For a few rows: operations of a frame hand over to Polars' threads, and on a busy machine wait for them.
    """
    places = pl.Series(rows, dtype=pl.UInt32)
    return list(zip(*(column[places].to_list() for column in columns), strict=True))


def places_of(ids: pl.Series, known: pl.Series) -> Rows:
    """The position of each id among distinct known ones; `MISSING` if it is not among them."""
    numbered = known.to_frame("id").with_row_index("place")
    places = ids.to_frame("id").join(numbered, on="id", how="left", maintain_order="left")["place"]
    return places.cast(pl.Int64).fill_null(MISSING).to_numpy()


def segment_numbers(topics: pl.Series, sessions: Ints) -> Rows:
    """Numbers segments: rows of one topic in one session share a number below n; a row without a topic has its own.

    Args:
        topics: the topic of each row, null without one (n).
        sessions: the first row of each row's session (n).
    """
    rows = len(sessions)
    together = _ranks(topics.fill_null("")) * rows + sessions
    return np.unique(np.where(topics.is_null().to_numpy(), -1 - np.arange(rows), together), return_inverse=True)[1]


def _ranks(values: pl.Series) -> Rows:
    """The rank of each value among the distinct ones."""
    return (values.rank("dense") - 1).cast(pl.Int64).to_numpy()
