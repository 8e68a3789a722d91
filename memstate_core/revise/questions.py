"""Which pairs people are asked about: the likeliest of each two groups, as a question about what these are merged into.

What is merged away in a night cannot be asked about any more, and the topics that survive may not have been compared.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.constraints import Constraints
from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.deduplication import Deduplicated, barred

Flags = NDArray[np.bool_]


def one_of_groups(found: Deduplicated, kept: Ints) -> Ints:
    """Of some pairs those within groups, and of each two groups the one that is likeliest by answers (rows,).

    Args:
        found: the pairs and their groups.
        kept: positions of pairs, ascending (rows,).
    """
    ends = np.sort(found.groups[np.stack([found.pairs.a[kept], found.pairs.b[kept]])], axis=0)
    order = np.lexsort((-found.expected[kept], *ends))
    first = np.diff(ends[:, order], axis=1, prepend=-1).any(axis=0) | (ends[0] == ends[1])[order]
    return np.asarray(kept[np.sort(order[first])])


def asked_topics(corpus: Corpus, found: Deduplicated, limits: Constraints, kept: Ints) -> tuple[Ints, Ints]:
    """The topics that pairs are asked about: the survivors of their groups, unless something keeps these apart.

    Args:
        corpus: the topics.
        found: the pairs and their groups.
        limits: pairs that are kept apart.
        kept: positions of pairs (rows,).

    Returns:
        Positions of topics, the first of each pair before the second ((rows,) both).
    """
    a, b = found.pairs.a[kept], found.pairs.b[kept]
    into = survivors(corpus, found.groups)
    one, other = np.minimum(into[a], into[b]), np.maximum(into[a], into[b])
    between = Candidates(one, other, found.pairs.seen_by[kept])
    free = ~found.grouped[kept] & ~_with_apart(found, kept)
    free &= ~barred(corpus, limits, found.origins, between, found.scored.weight[kept])
    return np.where(free, one, a), np.where(free, other, b)


def survivors(corpus: Corpus, groups: Ints) -> Ints:
    """The topic that each is merged into: the oldest of its group, as in `merge.decide` (topics,)."""
    rows = corpus.topics.select("created_at", "id", group=pl.Series(groups)).with_row_index("row")
    first = pl.col("row").sort_by("created_at", "id").first().over("group").cast(pl.Int64)
    return rows.select(first).to_series().to_numpy()


def _with_apart(found: Deduplicated, kept: Ints) -> Flags:
    """Which pairs are between groups of which other topics are kept apart (rows,)."""
    return np.isin(_groups_of(found, kept), _groups_of(found, np.flatnonzero(found.apart)))


def _groups_of(found: Deduplicated, rows: Ints) -> Ints:
    """A code of the two groups of some pairs (rows,)."""
    one, other = (found.groups[end[rows]] for end in (found.pairs.a, found.pairs.b))
    return np.asarray(np.minimum(one, other) * (found.groups.max(initial=0) + 1) + np.maximum(one, other))
