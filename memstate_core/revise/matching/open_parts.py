"""Pairs that leave open what distinguishes things of one title in their scope.

A father and a son have one name, address and town. If one record lacks the date of birth, nothing in the pair differs.
But the scope shows how often pairs that agree in as much differ in their dates of birth, where both state one. As often
the pair is of two things.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import pdtr

from memstate_core.revise.matching.contradictions import MIN_ANCHORS, VARYING
from memstate_core.revise.matching.differing_values import Flags
from memstate_core.revise.matching.nearest import Ints
from memstate_core.revise.matching.parts import FIELD

MAX_DIFFERENT = 0.05
"""The share of pairs of different things, among those that agree in as much, up to which a part may be left open."""
CONFIDENCE = 0.95
"""The probability of fewer different pairs if their share were that (a Poisson count) from which there are too many."""
BLOCK = 256
"""Patterns that are counted at a time."""
SCHEMA = 2
"""Fields in which a pair agrees, from which on a field that neither topic has is left open, too."""


def left_open(seen: pl.DataFrame, stated: Any, names: list[str], a: Ints, b: Ints, asked: Flags) -> Flags:
    """Pairs that leave a field open in which pairs that agree in as much often differ (pairs,).

    Fields that vary among the pairs that would be merged distinguish nothing. Topics that other pairs join are one
    thing, so what differs between them is an error, and as many are to be expected elsewhere.

    Args:
        seen: of pairs with the same title, columns of `agreements`.
        stated: which parts each topic has, CSR of ones (topics, names).
        names: of all parts.
        a: positions of topics (pairs,).
        b: positions of the others (pairs,).
        asked: pairs that would be merged (pairs,).
    """
    found, rows = np.zeros(len(a), bool), np.flatnonzero(asked)
    agree, differ = (_matrix(seen.filter(flag), names, len(a)) for flag in ("agree", "contradict"))
    fields = np.array([name.startswith(FIELD) for name in names], bool)
    chosen = np.flatnonzero(fields & (_sums(differ) > 0) & (_sums(differ[rows]) == 0))
    if not len(rows) or not len(chosen):
        return found
    one, both = (stated[:, chosen][ends[rows]].toarray() > 0 for ends in (a, b))
    joined = _joined(a, b, rows[~(one ^ both).any(axis=1)], stated.shape[0])
    errors, enough = _errors(agree[joined][:, chosen], differ[joined][:, chosen])
    patterns, which = _patterns(agree[rows])
    apart = differ[:, chosen].multiply(~joined[:, None]).tocsr()
    often = np.concatenate([
        _often(agree, patterns[start : start + BLOCK], agree[:, chosen], apart, errors) & enough
        for start in range(0, patterns.shape[0], BLOCK)
    ])  # fmt: skip
    alike = _sums(agree[rows][:, fields].T) >= SCHEMA
    unstated = ~(one & both) & (one | both | alike[:, None])
    found[rows] = (unstated & often[which]).any(axis=1)
    return found


def _errors(agreeing: Any, differing: Any) -> tuple[Any, Flags]:
    """How often fields differ between topics of one thing, and which seldom do (two arrays, (fields,))."""
    wrong, seen = _sums(differing), _sums(differing) + _sums(agreeing)
    share = np.where(seen < MIN_ANCHORS, 0.0, wrong / np.maximum(seen, 1))
    return share, share < VARYING


def _often(agree: Any, patterns: Any, agreeing: Any, differing: Any, errors: Any) -> Flags:
    """In which fields pairs that agree in all names of a pattern differ too often (patterns, fields)."""
    covers = csr_matrix((agree @ patterns.T).toarray() == _sums(patterns.T)[None, :], dtype=np.float32)
    same, other = (np.asarray((covers.T @ each).toarray()) for each in (agreeing, differing))
    few = pdtr(np.maximum(other - 1, 0), (MAX_DIFFERENT + errors)[None, :] * (same + other))
    return np.asarray((other > 0) & (few > CONFIDENCE))


def _patterns(agree: Any) -> tuple[Any, Ints]:
    """The distinct rows, and which each is."""
    place: dict[bytes, int] = {}
    agree.sort_indices()
    parts = np.split(agree.indices, agree.indptr[1:-1])
    which = np.array([place.setdefault(part.tobytes(), len(place)) for part in parts], np.int64)
    return agree[np.unique(which, return_index=True)[1]], which


def _sums(matrix: Any) -> Any:
    """Sums of columns."""
    return np.asarray(matrix.sum(axis=0)).ravel()


def _joined(a: Ints, b: Ints, links: Ints, topics: int) -> Flags:
    """Pairs whose topics some links join, directly or through others (pairs,)."""
    entries = np.ones(len(links), bool), (a[links], b[links])
    component = connected_components(coo_array(entries, shape=(topics, topics)), directed=False)[1]
    return np.asarray(component[a] == component[b])


def parts_stated(parts: pl.DataFrame, topics: int) -> tuple[Any, list[str]]:
    """Which parts each topic has (CSR of ones, (topics, names)), and their names.

    Args:
        parts: columns of `parts_of`.
        topics: how many topics there are.
    """
    names = parts["name"].unique().sort().to_list()
    return _matrix(parts.select("name", pair="row"), names, topics), names


def _matrix(rows: pl.DataFrame, names: list[str], count: int) -> Any:
    """Names by pair (columns pair, name) as ones, CSR (count, names)."""
    place = {name: at for at, name in enumerate(names)}
    column = rows["name"].replace_strict(place, return_dtype=pl.Int64).to_numpy() if rows.height else np.empty(0, int)
    entries = np.ones(rows.height, np.float32), (rows["pair"].to_numpy(), column)
    return csr_matrix(entries, shape=(count, len(names)))
