"""Statements that a later one replaced give it their place, where a question asks for what holds now.

Where evidence states values of fields, their histories say what superseded it: that comes before it, from wherever it
ranks. Of other turns it is judged by their form how likely a later one replaced them
(`memstate_core.retrieve.replacement`). The first places are exchanged; what most likely replaced one of them comes up
from below. What was replaced stays reachable and names its replacement. Words of change are English, and so are the
questions that ask for the present; others keep their order.
"""

from __future__ import annotations

import numpy as np

from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.replacement import PLACES, POOL, Pool
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows
from memstate_core.retrieve.standard_scores import Array
from memstate_core.retrieve.superseded import Statements
from memstate_core.retrieve.turns.edits import visible_wordings

EXCHANGED = 0.003
"""The least probability at which one of the first statements gives its place to a later one of them.

Who asks for the present wants the later one, and little is lost: it is among the first places anyhow.
"""

DOUBTED = 0.15
"""The least probability at which a statement names a later one that may have replaced it.

Low, since what was withdrawn must not look current; so some of the newest statements are doubted, too
(`tests/benchmarks/updates.py`).
"""

DISPLACES = 0.6
"""The least probability at which a replacement comes up from below; `DOUBTED` where the last of the first places is
worth little. Lower, what is displaced would often be an answer (`tests/benchmarks/retrieval.py`)."""

FAR_BELOW = 0.3
"""The most that the fifth row stands above the last of the pool, as a share of the first's, to be worth little."""


def newer(pool: Pool | None, scores: Array, seen: Flags, stated: Statements) -> Array:
    """What each row gains or loses when replaced statements give their places away (n).

    Args:
        pool: the first rows for a question that asks for the present; None for others, which exchange nothing.
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        stated: what each row states by the histories of fields.
    """
    gains: Array = np.zeros(len(scores))
    if pool is None:
        return gains
    first = pool.rows[:PLACES]
    order = _with_successor(pool, _exchanged(pool))
    ranked = _preceded(pool.rows[order], _visible(stated, seen))
    gains[ranked] = _places(scores, seen, first, ranked) - scores[ranked]
    return gains


def replaced_by(
    evidence: EvidenceSlice, pool: Pool | None, seen: Flags, shown: Rows, stated: Statements
) -> list[str | None]:
    """The observation that replaced each shown row (m), or null.

    It is the last wording of a message that was edited; else, if the question asks for the present, what superseded the
    row by the history of a field, or may have by its form.

    Args:
        evidence: the evidence of a scope (n rows).
        pool: as for `newer`.
        seen: which rows may be returned (n).
        shown: the rows of the answer (m).
        stated: as for `newer`.
    """
    later = visible_wordings(evidence.last_wordings, seen)[shown]
    if pool is not None:
        known = _visible(stated, seen)[shown]
        known = np.where(known == MISSING, _likely(pool, len(seen))[shown], known)
        later = np.where(later == MISSING, known, later)
    names = evidence.frame["observation_id"]
    return [None if row == MISSING else str(names[int(row)]) for row in later]


def _likely(pool: Pool, count: int) -> Rows:
    """What may have replaced each row by its form, `MISSING` where that is unlikely (n)."""
    likely, first = np.full(count, MISSING), pool.rows[: len(pool.probability)]
    if len(first):
        found = pool.probability.argmax(axis=1)
        likely[first] = np.where(pool.probability.max(axis=1) >= DOUBTED, pool.rows[found], MISSING)
    return likely


def _visible(stated: Statements, seen: Flags) -> Rows:
    """The row that superseded each row by the history of a field; `MISSING` where it may not be returned, too (n)."""
    rows: Rows = np.where(seen[stated.superseding], stated.superseding, MISSING)
    return rows


def _exchanged(pool: Pool) -> Rows:
    """The first places in their new order: each, from the first on, goes to the last that may replace what has it."""
    order = np.arange(min(PLACES, len(pool.rows)))
    replacing = np.where(pool.probability >= EXCHANGED, pool.at[None, :], -np.inf)
    for place in range(len(order)):
        below = replacing[order[place], order[place + 1 :]]
        if len(below) and np.isfinite(below.max()):
            other = place + 1 + int(below.argmax())
            order[[place, other]] = order[[other, place]]
    return order


def _with_successor(pool: Pool, order: Rows) -> Rows:
    """The order with the likeliest replacement from below, before the first statement that it replaces."""
    below = pool.probability[:PLACES, PLACES:]
    if not below.size or below.max() < (DOUBTED if _ends_far_below(pool.scores[:POOL]) else DISPLACES):
        return order
    old, new = divmod(int(below.argmax()), below.shape[1])
    place = int(np.flatnonzero(order == old)[0])
    return np.insert(order, place, PLACES + new)


def _ends_far_below(scores: Array) -> bool:
    """Whether the last of the first places stands far below the first one (scores of the pool, descending)."""
    return bool(scores[PLACES - 1] - scores[-1] <= FAR_BELOW * (scores[0] - scores[-1]))


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
