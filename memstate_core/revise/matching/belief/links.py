"""Likely pairs as links: which topics they connect, and which topics stand between the two of a pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from memstate_core.revise.matching.arrays import Ints, pair_products
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags


def components(pairs: Candidates, linked: Flags, topics: int) -> Ints:
    """The connected component of each topic (topics,)."""
    links = coo_array((np.ones(linked.sum(), bool), (pairs.a[linked], pairs.b[linked])), shape=(topics, topics))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def witnesses(pairs: Candidates, linked: Flags, topics: int) -> NDArray[np.int32]:
    """How many topics are linked to both topics of each pair (pairs,)."""
    a, b = pairs.a[linked], pairs.b[linked]
    entries = np.ones(2 * len(a), np.float32), (np.concatenate([a, b]), np.concatenate([b, a]))
    links = csr_matrix(entries, shape=(topics, topics))
    return pair_products(links, links, pairs.a, pairs.b).round().astype(np.int32)
