"""Candidate pairs: blocking, so that not all pairs of a scope and kind are compared.

Three views propose each topic's nearest neighbours: letters of the title, words of title, summary and fields,
and the embedding. Equal titles, shared rare units and shared field values make topics close in the first two.
The overlap of the views also gives an estimate of the pairs that all of them miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memstate_core.revise.matching.arrays import Ints, distinct, without
from memstate_core.revise.matching.candidates.nearest import nearest
from memstate_core.revise.matching.corpus import NONE, Corpus

NEIGHBOURS = 20
"""Nearest neighbours of a topic that each view proposes."""
VIEWS = ("title", "words", "meaning")
MAX_GROUP = 256
"""Topics of a group of probable duplicates that are compared with all others of it."""


@dataclass(frozen=True)
class Candidates:
    """Pairs of topics, each once, sorted.

    Attributes:
        a: positions in the corpus (pairs,).
        b: positions of the others, each greater than its `a`.
        seen_by: which views proposed the pair, bool (pairs, views); none for pairs of a group.
    """

    a: Ints
    b: Ints
    seen_by: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.a)

    def where(self, chosen: NDArray[np.bool_]) -> Candidates:
        """Some of the pairs (pairs,)."""
        return Candidates(self.a[chosen], self.b[chosen], self.seen_by[chosen])

    def in_blocks(self, size: int) -> Iterator[Candidates]:
        """All of the pairs in blocks of some size, in order; a single one without pairs."""
        for start in range(0, max(1, len(self)), size):
            part = slice(start, start + size)
            yield Candidates(self.a[part], self.b[part], self.seen_by[part])


def nearest_neighbours(corpus: Corpus) -> Candidates:
    """The pairs that the views propose within each block of one scope and compatible kinds."""
    blocks = _blocks(corpus)
    keys = []
    for matrix in _views(corpus):
        pairs = (nearest(matrix, members, NEIGHBOURS) for members in blocks)
        keys.append(distinct([a * len(corpus) + b for a, b in pairs]))
    return _candidates(keys, len(corpus))


def _views(corpus: Corpus) -> Iterator[Any]:
    """The matrices whose rows VIEWS compare, one after the other."""
    yield corpus.title_groups
    yield corpus.all_words
    yield corpus.vectors


def within_groups(corpus: Corpus, known: Candidates, probable: NDArray[np.bool_]) -> Candidates:
    """Pairs that are missing inside the groups which probable pairs connect, up to MAX_GROUP topics a group.

    Args:
        corpus: the topics.
        known: the pairs compared so far.
        probable: which of them are probably duplicates (pairs,).
    """
    a, b = known.a[probable], known.b[probable]
    links = coo_array((np.ones(len(a), bool), (a, b)), shape=(len(corpus), len(corpus)))
    missing = missing_pairs(connected_components(links, directed=False)[1], known, at_most=MAX_GROUP)
    return missing.where(compatible(corpus, missing))


def missing_pairs(group: NDArray[Any], known: Candidates, *, at_most: int) -> Candidates:
    """Pairs inside groups of three topics and more that are not known.

    Args:
        group: a group's number for each topic (topics,).
        known: pairs that are not wanted.
        at_most: topics of a group; larger ones are left out.
    """
    sizes, count = np.bincount(group, minlength=1), len(group)
    member = np.flatnonzero((sizes[group] > 2) & (sizes[group] <= at_most))
    order = member[np.argsort(group[member], kind="stable")]
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    pairs = [(part[i], part[j]) for part in parts for i, j in [np.triu_indices(len(part), 1)]]
    keys = [np.minimum(one, other) * count + np.maximum(one, other) for one, other in pairs]
    fresh = without(np.concatenate([*keys, np.empty(0, np.int64)]), known.a * count + known.b)
    return Candidates(*np.divmod(fresh, max(1, count)), np.zeros((len(fresh), len(VIEWS)), bool))


def compatible(corpus: Corpus, pairs: Candidates) -> NDArray[np.bool_]:
    """Pairs whose kinds are the same, or of which one has none (pairs,)."""
    one, other = corpus.kind[pairs.a], corpus.kind[pairs.b]
    return np.asarray((one == other) | (one == NONE) | (other == NONE))


def joined(one: Candidates, other: Candidates) -> Candidates:
    """Both sets of pairs, the second after the first."""
    parts = [(one.a, other.a), (one.b, other.b), (one.seen_by, other.seen_by)]
    return Candidates(*(np.concatenate(part) for part in parts))


def all_pairs(corpus: Corpus) -> int:
    """How many pairs of one scope and compatible kinds there are."""
    frame = corpus.topics.select("scope").with_columns(kind=corpus.kind)
    named = frame.filter(pl.col("kind") != NONE)
    within = _pairs_of(named.group_by("scope", "kind").len())
    return _pairs_of(frame.group_by("scope").len()) - _pairs_of(named.group_by("scope").len()) + within


def completeness(seen_by: NDArray[np.bool_], probability: NDArray[np.float64]) -> float | None:
    """Estimated share of true pairs that the views found, by capture and recapture.

    If two views find pairs independently, the share of one view's pairs that the other finds estimates what both
    miss (Chapman's estimator, 1951). Titles and meaning are the two views; words depend on both. Views that
    are positively correlated make the estimate too high.

    Returns:
        A share in [0, 1], or None where no pair is probable.
    """
    title, meaning = seen_by[:, 0], seen_by[:, 2]
    first, second, both = (float(probability[seen].sum()) for seen in (title, meaning, title & meaning))
    found = float(probability[seen_by.any(axis=1)].sum())
    if found < 1:
        return None
    return min(1.0, found / max(found, (first + 1) * (second + 1) / (both + 1) - 1))


def _blocks(corpus: Corpus) -> list[Ints]:
    """Members to compare with each other: a scope's topics of each kind, with those of no kind."""
    blocks = []
    starts = np.flatnonzero(np.diff(corpus.scope, prepend=NONE)) if len(corpus) else np.empty(0, np.int64)
    for members in np.split(np.arange(len(corpus)), starts[1:]):
        kinds = corpus.kind[members]
        named = np.unique(kinds[kinds != NONE])
        blocks += [members[(kinds == kind) | (kinds == NONE)] for kind in named] or [members]
    return [block for block in blocks if len(block) > 1]


def _pairs_of(counted: pl.DataFrame) -> int:
    return int(counted.select(pl.col("len").cast(pl.Int64) * (pl.col("len").cast(pl.Int64) - 1) // 2).sum().item())


def _candidates(keys: list[Ints], count: int) -> Candidates:
    every = distinct(keys)
    seen_by = np.zeros((len(every), len(keys)), bool)
    for view, key in enumerate(keys):
        seen_by[np.searchsorted(every, key), view] = True
    return Candidates(*np.divmod(every, max(1, count)), seen_by)
