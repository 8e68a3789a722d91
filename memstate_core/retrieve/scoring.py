"""Scores of evidence and topics for a question, as sums of comparable parts.

Every part is standardised within its scope (`memstate_core.retrieve.standard_scores`), so that cosines and BM25 can be
added.

Ranking only; `memstate_core.retrieve.search` decides what is visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.model.errors import DimensionMismatch
from memstate_core.retrieve.question.dates import named_spans, nearness
from memstate_core.retrieve.question.local_dates import local_spans
from memstate_core.retrieve.question.relative_dates import relative_spans
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows, TopicSlice
from memstate_core.retrieve.standard_scores import BM25_PRIOR, COSINE_PRIOR, EVIDENCE_PRIOR, Array, standardised, total

Parts = dict[str, Array]
Places = npt.NDArray[np.intp]

WEIGHTS = {"turn_words": 0.3, "window_words": 0.8, "turn_vector": 1.0, "window_vector": 0.5, "length": 0.5}
"""The weight of each standardised part: a short turn has few words, so those of its window count more, and turns that
say more answer more often.

All weights were set near those of a softmax regression on half of the chats of `tests/benchmarks/retrieval.py`; on the
other half recall moves by about a point when one of them changes by a third.
"""

_OF_CONTEXT = {"window_words", "window_vector"}

ASKS = 1.5
"""What a turn that only asks loses: it seldom answers."""

SPEAKER = 3.0
"""The score of a speaker who is named in the question, in standard deviations."""

NEAR_DATE = 2.0
"""The score of evidence that was observed on a date named in the question."""

SESSION, SEGMENT = 0.2, 0.3
"""The share of the score of the best turn of a session, and of a segment, that the others get: answers are near their
context, and a segment is nearer than a whole session."""

STATES = 1.5
"""What a turn gains that states a value of a field: what somebody took a fact from answers more often."""

TOPIC_TEXT = 0.5
"""The weight of the text of its topic for a turn that states a value; of other turns it says too little."""

BEST_EVIDENCE = 2.0
"""The weight of a topic's best evidence beside its title and summary; it is itself a sum of several parts."""

STANDARDISED = WEIGHTS | {"words": 1.0, "evidence": BEST_EVIDENCE, "vector": 1.0, "topic_text": TOPIC_TEXT}
"""The weight of each part that is standardised, of evidence and of topics: its spread among unrelated rows."""


@dataclass(frozen=True)
class PreparedQuestion:
    """A question prepared for scoring.

    Attributes:
        text: the question.
        terms: its distinct terms.
        said: those that a turn that answers it may have.
        vector: its unit vector (float32, d), or None to compare terms only.
        unnamed: the unit vector of the question without the names of speakers, for evidence: a turn seldom names its
            speaker, and turns that address the person would be nearer than those by them.
        dated: whether dates in the question count, and what is newer.
        present: whether it asks for what holds now.
        at: the time of asking, to which relative dates refer; they are ignored if it is None.
        model: the name on record of the model that made the vectors.
    """

    text: str
    terms: list[str]
    said: list[str]
    vector: Vectors | None
    unnamed: Vectors | None
    dated: bool
    present: bool = False
    at: datetime | None = None
    model: str = ""


def highest(scores: Array, rows: Places, count: int) -> Places:
    """The rows with the `count` highest scores, and all that tie with the last of them."""
    if not 0 < count < len(rows):
        return rows if count else rows[:0]
    among = scores[rows]
    least = np.partition(among, len(rows) - count)[len(rows) - count]
    highest: Places = rows[among >= least]
    return highest


def evidence_parts(evidence: EvidenceSlice, asked: PreparedQuestion) -> Parts:
    """The score of each piece of evidence, by part: its own and what others lend."""
    own = own_parts(evidence, asked)
    return own | lent_parts(evidence, total(own.values()))


def own_parts(evidence: EvidenceSlice, asked: PreparedQuestion) -> Parts:
    """The parts that a turn has by itself.

    They are BM25 and cosine of the turn and of its window, how much it says, whether it asks, and the speaker and the
    date if the question names them.
    """
    by_words = evidence.terms.scores(asked.said)
    parts = {
        "turn_words": standardised(by_words[:, 0], BM25_PRIOR),
        "window_words": standardised(by_words[:, 1], BM25_PRIOR),
        "length": evidence.length_scores,
    }
    if asked.unnamed is not None:
        turn, window = _cosines(evidence, asked.unnamed, asked.model)
        parts["turn_vector"] = standardised(turn, COSINE_PRIOR)
        parts["window_vector"] = standardised(window, COSINE_PRIOR)
    parts = {name: WEIGHTS[name] * part for name, part in parts.items()}
    parts |= {name: evidence.context_weight * parts[name] for name in parts.keys() & _OF_CONTEXT}
    parts["asks"] = 0.0 - ASKS * evidence.asking
    parts["speaker"] = SPEAKER * evidence.names.named(asked.terms)[evidence.speakers]
    if asked.dated:
        parts["date"] = NEAR_DATE * _near(evidence, asked)
    return parts


def lent_parts(evidence: EvidenceSlice, own: Array) -> Parts:
    """The share of the score of the best turn of its session, and of its segment, that each turn gets."""
    return {
        "session": evidence.context_weight * SESSION * _best_of(own, evidence.windows[:, 2]),
        "topic": evidence.context_weight * SEGMENT * _best_of(own, evidence.segments),
    }


def topic_similarity(topics: TopicSlice, asked: PreparedQuestion) -> Array:
    """The cosine of each topic's text with the question (n); NaN if not compared."""
    if asked.vector is None:
        return np.full(topics.frame.height, np.nan)
    return _along(topics.vectors, asked.vector, asked.model)


def topic_parts(topics: TopicSlice, asked: PreparedQuestion, best_evidence: Array, similarity: Array) -> Parts:
    """The score of each topic, by part.

    Args:
        topics: the topics of one scope (n); those without a row in the term index count as without the question's
            terms.
        asked: the question.
        best_evidence: the best score among each topic's evidence, NaN where it has none (n).
        similarity: the result of `topic_similarity` (n).
    """
    by_words = np.append(topics.terms.scores(asked.terms)[:, 0], 0.0)[topics.term_rows]  # `MISSING` is the last row
    parts = {
        "words": standardised(by_words, BM25_PRIOR),
        "evidence": BEST_EVIDENCE * standardised(best_evidence, EVIDENCE_PRIOR),
    }
    if asked.vector is not None:
        parts["vector"] = standardised(similarity, COSINE_PRIOR)
    return parts


def topic_text_part(evidence: EvidenceSlice, similarity: Array, homes: Rows, stating: Flags) -> Array:
    """What a turn gains that states a value of a field, and by the text of its topic, which says what the value is of.

    Args:
        evidence: the evidence of a scope (n rows).
        similarity: the result of `topic_similarity`.
        homes: the row of each row's topic, `MISSING` without one (n).
        stating: which rows state values (n).
    """
    said = stating & ~evidence.without_vector
    of_topics = standardised(np.append(similarity, np.nan)[homes], COSINE_PRIOR)
    part: Array = np.where(said, STATES + TOPIC_TEXT * of_topics, 0.0)
    return part


def _cosines(evidence: EvidenceSlice, vector: Vectors, model: str) -> tuple[Array, Array]:
    """Cosine of each turn and of each window with the question; NaN without a vector."""
    cosines = np.append(_along(evidence.vectors, vector, model), 0.0)  # `MISSING` is the last place
    along, beside = np.append(cosines[evidence.vector_rows], 0.0), evidence.windows[:, :2]
    window = (along[:-1] + along[beside[:, 0]] + along[beside[:, 1]]) / evidence.known_lengths
    along[:-1][evidence.without_vector] = np.nan
    return along[:-1], window


def _along(vectors: Vectors, vector: Vectors, model: str) -> Array:
    """The cosine of each vector with that of the question; a snapshot without vectors may have any dimension."""
    if len(vectors) and vectors.shape[1] != len(vector):
        raise DimensionMismatch(model, len(vector), vectors.shape[1], "the served snapshot")
    return (vectors @ vector).astype(np.float64) if len(vectors) else np.zeros(0)


def _near(evidence: EvidenceSlice, asked: PreparedQuestion) -> Array:
    """The nearness of each observation to the dates in a question."""
    local, text = local_spans(asked.text, asked.at, evidence.years)
    relative, text = ([], text) if asked.at is None else relative_spans(text, asked.at)
    return nearness(evidence.frame["observed_at"], [*local, *relative, *named_spans(text, evidence.years)])


def _best_of(scores: Array, groups: npt.NDArray[Any]) -> Array:
    """For each row, the best score within its group; groups are numbers below the number of rows."""
    best: Array = np.full(len(scores), -np.inf)
    np.maximum.at(best, groups, scores)
    found: Array = best[groups]
    return found
