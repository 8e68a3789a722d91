"""How well evidence and topics answer a question, as sums of comparable parts.

Every part is standardised within its scope (z-scores, as in the fusion of Montague and Aslam 2001,
"Relevance Score Normalization for Metasearch"), so that cosines and BM25 can be added. A scope of few rows
has no distribution of its own to speak of: its mean and spread are drawn towards usual values with the
weight of a few rows (Gelman et al., Bayesian Data Analysis, 2.5), which also keeps a single row comparable.

Ranking only; what may be seen at all is decided in `memstate_core.retrieve.search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.retrieve.dates import named_spans, nearness
from memstate_core.retrieve.index.windows import NOBODY
from memstate_core.retrieve.relative_dates import relative_spans
from memstate_core.retrieve.scope_data import EvidenceSlice, TopicSlice

Array = npt.NDArray[np.float64]
Parts = dict[str, Array]

SPEAKER = 3.0
"""What it is worth, in standard deviations, that the speaker is named in the question."""

NEAR_DATE = 2.0
"""What it is worth that evidence was observed at a date which the question names."""

SESSION, TOPIC = 0.3, 0.5
"""What the best turn of a session, and of a topic within it, lends to the others: an answer's context is near it, and
a stretch of turns about one subject is nearer than a whole session."""

BEST_EVIDENCE = 2.0
"""What a topic's best evidence weighs beside its title and summary, being itself a sum of several parts."""


@dataclass(frozen=True)
class Usual:
    """What a part looks like over many rows that have nothing to do with the question."""

    mean: float
    spread: float


USUAL_COSINE = Usual(0.1, 0.1)
USUAL_WORDS = Usual(0.05, 0.1)
USUAL_EVIDENCE = Usual(4.0, 4.0)
_USUAL_ROWS = 10


@dataclass(frozen=True)
class Asked:
    """A question made ready for scoring.

    Attributes:
        text: as it was put.
        terms: its distinct terms.
        vector: its unit vector (float32, 384), or None when meaning is not to be compared.
        dated: whether dates that it names count.
        at: when it is asked, to which words like "yesterday" refer; they do not count when that is None.
    """

    text: str
    terms: list[str]
    vector: Vectors | None
    dated: bool
    at: datetime | None = None


def standardised(values: Array, usual: Usual) -> Array:
    """Values in standard deviations from their mean; NaN, which stands for unknown, becomes 0.

    Args:
        values: one value a row.
        usual: mean and spread to which few rows are drawn, with the weight of `_USUAL_ROWS` rows.
    """
    known = values[~np.isnan(values)]
    rows = len(known) + _USUAL_ROWS
    mean = (known.sum() + _USUAL_ROWS * usual.mean) / rows
    variance = (((known - mean) ** 2).sum() + _USUAL_ROWS * usual.spread**2) / rows
    scores: Array = np.nan_to_num((values - mean) / np.sqrt(variance))
    return scores


def total(parts: Parts) -> Array:
    """The sum of the parts of each row."""
    summed: Array = np.sum(list(parts.values()), axis=0)
    return summed


def evidence_parts(evidence: EvidenceSlice, asked: Asked) -> Parts:
    """What each piece of evidence scores, by part.

    The parts are words and meaning of the turn and of its window, the speaker and the date where the
    question names them, and a share of what the best turn of its session, and of its topic there, scores by these.
    """
    by_words = evidence.words.scores(asked.terms)
    parts = {
        "turn_words": standardised(by_words[:, 0], USUAL_WORDS),
        "window_words": standardised(by_words[:, 1], USUAL_WORDS),
        "speaker": SPEAKER * _named(evidence, asked.terms),
    }
    if asked.vector is not None:
        turn, window = _cosines(evidence, asked.vector)
        parts["turn_vector"] = standardised(turn, USUAL_COSINE)
        parts["window_vector"] = standardised(window, USUAL_COSINE)
    if asked.dated:
        parts["date"] = NEAR_DATE * _near(evidence, asked)
    own = total(parts)
    parts["session"] = SESSION * _best_of(own, evidence.windows[:, 2])
    parts["topic"] = TOPIC * _best_of(own, evidence.stretches)
    return parts


def topic_parts(topics: TopicSlice, asked: Asked, best_evidence: Array) -> tuple[Parts, Array]:
    """What each topic scores, by part, and its cosine with the question (NaN when not compared).

    Args:
        topics: the topics of one scope; rows beyond the word index contain no word of the question.
        asked: the question.
        best_evidence: the best score among each topic's evidence, NaN where it has none.
    """
    cosine = np.full(topics.frame.height, np.nan)
    by_words = topics.words.scores(asked.terms)[:, 0]
    unindexed = topics.frame.height - len(by_words)
    parts = {
        "words": standardised(np.pad(by_words, (0, unindexed)), USUAL_WORDS),
        "evidence": BEST_EVIDENCE * standardised(best_evidence, USUAL_EVIDENCE),
    }
    if asked.vector is not None:
        cosine = (topics.vectors @ asked.vector).astype(np.float64)
        parts["vector"] = standardised(cosine, USUAL_COSINE)
    return parts, cosine


def _cosines(evidence: EvidenceSlice, vector: Vectors) -> tuple[Array, Array]:
    """Cosine of each turn and of each window with the question; NaN without a vector."""
    rows, beside = evidence.vector_rows, evidence.windows[:, :2]
    turn = np.full(len(rows) + 1, np.nan)
    turn[:-1][rows != NOBODY] = (evidence.vectors @ vector)[rows[rows != NOBODY]]
    along = np.nan_to_num(turn)
    lengths = np.where(evidence.window_lengths > 0, evidence.window_lengths, np.nan)
    window = (along[:-1] + along[beside[:, 0]] + along[beside[:, 1]]) / lengths
    return turn[:-1], window


def _near(evidence: EvidenceSlice, asked: Asked) -> Array:
    """How near each moment lies to the times that a question names."""
    relative, text = ([], asked.text) if asked.at is None else relative_spans(asked.text, asked.at)
    return nearness(evidence.frame["observed_at"], [*relative, *named_spans(text, evidence.years)])


def _named(evidence: EvidenceSlice, asked: list[str]) -> Array:
    """Which share of the words of each speaker's name the question contains."""
    speakers, said = evidence.names["speaker"].to_numpy(), evidence.names["word"].is_in(asked).to_numpy()
    count = int(evidence.speakers.max(initial=-1)) + 1
    lengths = np.maximum(np.bincount(speakers, minlength=count), 1)
    shares: Array = np.bincount(speakers, said, minlength=count) / lengths
    return shares[evidence.speakers]


def _best_of(scores: Array, groups: npt.NDArray[Any]) -> Array:
    """For each row the best score within its group; groups are numbers below the number of rows."""
    best: Array = np.full(len(scores), -np.inf)
    np.maximum.at(best, groups, scores)
    found: Array = best[groups]
    return found
