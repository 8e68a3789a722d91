"""Statements that a later one replaced give it their place, where a question asks for what holds now.

Where evidence states values of fields, their histories say what superseded it: that comes before it, from wherever it
ranks. Of other turns nothing is understood: a later one of the same speaker, said in another session, counts as a
replacement if it is about the same (cosine), or is near it and says that something changed or has nothing nearer before
it. The first places are exchanged; where the last of them stand far below the first, what follows a statement among
them comes up from below. What was replaced stays reachable and names its replacement. Words of change are English, and
so are the questions that ask for the present; others keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.present import asks_for_the_present
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows
from memstate_core.retrieve.scoring import Array, highest
from memstate_core.retrieve.superseded import Statements

PLACES = 5
"""How many of the first places are exchanged."""

POOL = 50
"""How many of the first rows are compared with each other."""

SAME, NEAR_BELOW, NEAR = 0.5, 0.4, 0.3
"""The least cosine between two turns that are about the same, and between two of which other signs say so: where the
later one is not among the first places, and elsewhere.

Chosen with `tests/benchmarks/updates.py` on half of the facts.
"""

NEAREST = 3
"""How many of the earlier turns that are nearest to a later one it may replace without a word of change."""

COMPARED = 10
"""With how many earlier turns a later one must be compared for the nearest of them to say anything."""

FAR_BELOW = 0.3
"""The most that the fifth row stands above the last of the pool, as a share of the first's, for one to come up.

Higher, what is displaced would often be an answer (`tests/benchmarks/retrieval.py`).
"""

Related = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pool:
    """The first rows, compared with each other.

    Attributes:
        rows: the rows, best first (n).
        cosines: of each earlier turn (row) with each later statement of its speaker in another session (column); -1
            for other pairs (n x n).
        replaces: whether the statement of a column may have replaced that of a row (n x n).
        at: when each was said (n).
    """

    rows: Rows
    cosines: Vectors
    replaces: Related
    at: Array


def newer(evidence: EvidenceSlice, question: str, scores: Array, seen: Flags, stated: Statements) -> Array:
    """What each row gains or loses when replaced statements give their places away (n).

    Args:
        evidence: the evidence of a scope (n rows).
        question: the question; unless it asks for the present, nothing is exchanged.
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        stated: what each row states by the histories of fields.
    """
    gains: Array = np.zeros(len(scores))
    if not asks_for_the_present(question, evidence.years):
        return gains
    pool = _pool(evidence, _first(scores, seen, POOL))
    first = pool.rows[:PLACES]
    order = _exchanged(pool)
    if _has_place(scores[pool.rows]):
        order = _with_successor(pool, order)
    ranked = _preceded(pool.rows[order], _visible(stated, seen))
    gains[ranked] = _places(scores, seen, first, ranked) - scores[ranked]
    return gains


def replaced_by(
    evidence: EvidenceSlice, question: str | None, scores: Array, seen: Flags, shown: Rows, stated: Statements
) -> list[str | None]:
    """The observation that replaced each shown row (m): by the history of a field, else by its meaning; else null.

    By meaning it is the last row of the pool with a word of change that is near this one and nearer to nothing that was
    said before; among the first places also one that is about the same.

    Args:
        evidence: the evidence of a scope (n rows).
        question: the question, or None if time does not count; unless it asks for the present, nothing is replaced.
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        shown: the rows of the answer (m).
        stated: as for `newer`.
    """
    if question is None or not len(shown) or not asks_for_the_present(question, evidence.years):
        return [None] * len(shown)
    alike = _alike(evidence, stated.stating, _first(scores, seen, POOL), shown)
    known = _visible(stated, seen)[shown]
    names = evidence.frame["observation_id"]
    later = np.where(known == MISSING, alike, known)
    return [None if row == MISSING else str(names[int(row)]) for row in later]


def _visible(stated: Statements, seen: Flags) -> Rows:
    """The row that superseded each row by the history of a field; `MISSING` where it may not be returned, too (n)."""
    rows: Rows = np.where(seen[stated.superseding], stated.superseding, MISSING)
    return rows


def _alike(evidence: EvidenceSlice, stating: Flags, pool: Rows, shown: Rows) -> Rows:
    """The row of the pool that may have replaced each shown row by its meaning (m); `MISSING` without one.

    Of two rows that state values of fields, the histories know whether one superseded the other.
    """
    cosines = _following(evidence, shown, pool)
    nearest = cosines >= _following(evidence, pool, pool).max(axis=0)
    is_first = np.arange(len(pool)) < PLACES
    alike = is_first & (cosines >= SAME) | nearest & (cosines >= np.where(is_first, NEAR, NEAR_BELOW))
    says = evidence.changes[pool] & alike & ~(stating[shown][:, None] & stating[pool][None, :])
    at = np.where(says, evidence.moments[pool], -np.inf)
    found: Rows = np.where(says.any(axis=1), pool[at.argmax(axis=1)], MISSING)
    return found


def _first(scores: Array, seen: Flags, count: int) -> Rows:
    rows = highest(scores, np.flatnonzero(seen), count)
    first: Rows = rows[np.argsort(-scores[rows], kind="stable")[:count]]
    return first


def _pool(evidence: EvidenceSlice, rows: Rows) -> Pool:
    cosines = _following(evidence, rows, rows)
    nearest = (cosines >= _highest_but(cosines, NEAREST - 1, axis=0)) & _compared(cosines)
    alike = (cosines >= SAME) | (cosines >= NEAR) & (evidence.changes[rows][None, :] | nearest)
    return Pool(rows, cosines, alike, evidence.moments[rows])


def _following(evidence: EvidenceSlice, old: Rows, new: Rows) -> Vectors:
    """The cosine of each old row with each new one that says something later, by the same speaker; -1 elsewhere.

    What follows in the same session goes on about the same, and seldom says that it is no longer so.
    """
    cosines = _cosines(_vectors(evidence, old), _vectors(evidence, new))
    sessions, states = evidence.windows[:, 2], evidence.asking[new] < 1
    later = evidence.moments[new][None, :] > evidence.moments[old][:, None]
    apart = sessions[old][:, None] != sessions[new][None, :]
    same = evidence.speakers[old][:, None] == evidence.speakers[new][None, :]
    found: Vectors = np.where(later & apart & same & states[None, :], cosines, -1.0)
    return found


def _vectors(evidence: EvidenceSlice, rows: Rows) -> Vectors:
    """The unit vectors of rows; NaN where one has none."""
    places = evidence.vector_rows[rows]
    vectors = np.full((len(rows), evidence.vectors.shape[1]), np.nan, dtype=np.float32)
    vectors[places != MISSING] = evidence.vectors[places[places != MISSING]]
    return vectors


def _cosines(old: Vectors, new: Vectors) -> Vectors:
    """The cosine of each old vector with each new one, -1 without one.

    One product a new vector: the product of two matrices this small is handed to threads, and waits for busy ones.
    """
    cosines: Vectors = np.nan_to_num(np.matmul(old[None, :, :], new[:, :, None])[:, :, 0].T, nan=-1.0)
    return cosines


def _highest_but(values: Vectors, count: int, axis: int) -> Vectors:
    """The highest value along an axis but for `count` higher ones."""
    size = values.shape[axis]
    at = max(size - 1 - count, 0)
    return np.partition(values, at, axis=axis).take([at], axis=axis) if size else values


def _compared(cosines: Vectors) -> Flags:
    """Which statements (columns) are compared with enough earlier turns."""
    compared: Flags = (cosines > -1).sum(axis=0) >= COMPARED
    return compared


def _exchanged(pool: Pool) -> Rows:
    """The first places in their new order: each, from the first on, goes to the last that replaces what has it."""
    order = np.arange(min(PLACES, len(pool.rows)))
    replacing = np.where(pool.replaces, pool.at[None, :], -np.inf)
    for place in range(len(order)):
        below = replacing[order[place], order[place + 1 :]]
        if len(below) and np.isfinite(below.max()):
            other = place + 1 + int(below.argmax())
            order[[place, other]] = order[[other, place]]
    return order


def _has_place(scores: Array) -> bool:
    """Whether the last of the first places stands far below the first one (scores of the pool, descending)."""
    return len(scores) > PLACES and bool(scores[PLACES - 1] - scores[-1] <= FAR_BELOW * (scores[0] - scores[-1]))


def _with_successor(pool: Pool, order: Rows) -> Rows:
    """The order with the nearest successor of a first statement from below, before that statement.

    A successor has nothing nearer before it, and that statement few nearer ones after it. A statement needs none if a
    still later one of the first places may have replaced it.
    """
    below = pool.cosines[:PLACES, PLACES:]
    is_next = (below >= pool.cosines[:, PLACES:].max(axis=0)) & _compared(pool.cosines)[PLACES:]
    is_next &= below >= _highest_but(pool.cosines[:PLACES], NEAREST - 1, axis=1)
    known = np.where(pool.replaces[:PLACES, :PLACES], pool.at[:PLACES], -np.inf).max(axis=1)
    wanted = (below >= NEAR) & is_next & (pool.at[PLACES:] > known[:, None])
    if not wanted.any():
        return order
    old, new = divmod(int(np.where(wanted, below, -1.0).argmax()), below.shape[1])
    place = int(np.flatnonzero(order == old)[0])
    return np.insert(order, place, PLACES + new)


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
