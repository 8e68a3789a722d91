"""Statements that a later one replaced give it their place, where a question asks for what holds now.

Where evidence states values of fields, their histories say what superseded it: that comes before it, from wherever it
ranks. Of other turns nothing is understood: a later one of the same speaker counts as a replacement if it is about the
same (cosine), or is near it and says that something changed, and only the first places are exchanged. What was replaced
stays reachable and names its replacement. Tenses and words of change are English; other questions keep their order.
"""

from __future__ import annotations

import re

import numpy as np

from memstate_core.embed.encoder import Vectors
from memstate_core.retrieve.dates import named_spans
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows
from memstate_core.retrieve.scoring import Array, highest

PLACES = 5
"""How many of the first places are exchanged."""

SAME, SAME_AND_CHANGED = 0.5, 0.3
"""The least cosine between two turns that are about the same: without and with a word of change in the later one.

Chosen with `tests/benchmarks/updates.py` on half of the facts.
"""

REPLACED = 0.5
"""The least cosine to a later turn with a word of change that is named as its replacement; chosen there, too."""

_VERB = re.compile(
    r"\b(?:what|who|where|which|how)(?P<short>['\u2019]s)\b|\b(?P<present>is|are|am|does|do|has|have|can)\b|"
    r"\b(?:did|was|were|had|would|will|could|might|should)\b",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"\b(?:before|previous|previously|earlier|former|formerly|first|originally|initially|in the past|used? to|ago|last|"
    r"once|yesterday)\b",
    re.IGNORECASE,
)


def asks_for_the_present(question: str, years: list[int]) -> bool:
    """Whether a question is in the present tense and names no earlier time.

    Args:
        question: the question.
        years: the years of the evidence, to which its dates may belong.
    """
    verb = _VERB.search(question)
    present = verb is not None and bool(verb["present"] or verb["short"])
    return present and not _EARLIER.search(question) and not named_spans(question, years)


def newer(evidence: EvidenceSlice, question: str, scores: Array, seen: Flags, superseding: Rows) -> Array:
    """What each row gains or loses when replaced statements give their places away (n).

    Args:
        evidence: the evidence of a scope (n rows).
        question: the question; unless it asks for the present, nothing is exchanged.
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        superseding: the row that superseded each row by the history of a field, `MISSING` without one (n).
    """
    gains: Array = np.zeros(len(scores))
    if not asks_for_the_present(question, evidence.years):
        return gains
    first = _first(scores, seen, PLACES)
    exchanged = _exchanged(first, _replacing(evidence, first, first, (SAME, SAME_AND_CHANGED)))
    ranked = _preceded(exchanged, np.where(seen[superseding], superseding, MISSING))
    gains[ranked] = _places(scores, seen, first, ranked) - scores[ranked]
    return gains


def replaced_by(
    evidence: EvidenceSlice, question: str | None, scores: Array, seen: Flags, shown: Rows, superseding: Rows
) -> list[str | None]:
    """The observation that replaced each shown row (m): by the history of a field, else by its meaning; else null.

    By meaning it is the last of the first places that may have replaced the row.

    Args:
        evidence: the evidence of a scope (n rows).
        question: the question, or None if time does not count; unless it asks for the present, nothing is replaced.
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        shown: the rows of the answer (m).
        superseding: as for `newer` (n).
    """
    if question is None or not len(shown) or not asks_for_the_present(question, evidence.years):
        return [None] * len(shown)
    first = _first(scores, seen, PLACES)
    said = _replacing(evidence, shown, first, (np.inf, REPLACED))
    alike = np.where(np.isfinite(said.max(axis=1)), first[said.argmax(axis=1)], MISSING)
    known = np.where(seen[superseding], superseding, MISSING)[shown]
    names = evidence.frame["observation_id"]
    later = np.where(known == MISSING, alike, known)
    return [None if row == MISSING else str(names[int(row)]) for row in later]


def _first(scores: Array, seen: Flags, count: int) -> Rows:
    rows = highest(scores, np.flatnonzero(seen), count)
    first: Rows = rows[np.argsort(-scores[rows], kind="stable")[:count]]
    return first


def _replacing(evidence: EvidenceSlice, old: Rows, new: Rows, least: tuple[float, float]) -> Array:
    """When each new row (column) was said, where it may replace an old one (row); -inf elsewhere.

    `least` has the cosines from which it may, without and with a word of change.
    """
    at = evidence.moments[new][None, :]
    cosines = _vectors(evidence, old) @ _vectors(evidence, new).T
    same = cosines >= np.where(evidence.changes[new], least[1], least[0])[None, :]
    states = evidence.asking[new] < 1
    later = (at > evidence.moments[old][:, None]) & (evidence.speakers[old][:, None] == evidence.speakers[new])
    return np.where(same & later & states[None, :], at, -np.inf)


def _vectors(evidence: EvidenceSlice, rows: Rows) -> Vectors:
    """The unit vectors of rows; NaN where one has none."""
    places = evidence.vector_rows[rows]
    vectors = np.full((len(rows), evidence.vectors.shape[1]), np.nan, dtype=np.float32)
    vectors[places != MISSING] = evidence.vectors[places[places != MISSING]]
    return vectors


def _exchanged(first: Rows, replacing: Array) -> Rows:
    """The rows in their new order: each place, from the first on, goes to the last statement that replaces its own."""
    order = np.arange(len(first))
    for place in range(len(order)):
        below = replacing[order[place], order[place + 1 :]]
        if len(below) and np.isfinite(below.max()):
            other = place + 1 + int(below.argmax())
            order[[place, other]] = order[[other, place]]
    ranked: Rows = first[order]
    return ranked


def _preceded(order: Rows, superseding: Rows) -> Rows:
    """The rows in their order, each after the one that superseded it, which may come from below them."""
    ranked: dict[int, None] = {}
    for row in order:
        ranked |= {int(each): None for each in (superseding[row], row) if each != MISSING}
    return np.array(list(ranked), dtype=np.intp)


def _places(scores: Array, seen: Flags, first: Rows, ranked: Rows) -> Array:
    """The scores of the first places for as many rows, and for further ones scores between them and the next row's."""
    further = len(ranked) - len(first)
    if not further:
        return scores[first]
    rest = seen.copy()
    rest[ranked] = False
    below = scores[rest].max() if rest.any() else scores[first[-1]] - 1.0
    return np.append(scores[first], np.linspace(scores[first[-1]], below, further + 2)[1:-1])
