"""Which sources never repeat themselves, found out from the store.

A catalogue, a CRM export or a curated list says by its nature that its own records are distinct. If a
source repeated itself as often as sources repeat each other, then the pairs that agree best would lie
within one source as often as chance has it. Where they hardly ever do, the source is taken at its word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.blocking import Candidates
from memstate_core.revise.corpus import NONE, Corpus
from memstate_core.revise.sparse import Ints, pair_products

DEPTHS = (50, 100, 200, 400, 800, 1600)
"""How many of the best pairs are looked at; the depth that speaks clearest decides."""
MAX_SHARE = 0.35
"""Upper confidence bound of pairs within sources, over what chance has, below which sources are distinct."""


@dataclass(frozen=True)
class Origins:
    """Where topics come from, as far as their sources are taken at their word.

    Attributes:
        member: which topics have evidence from which source, CSR (topics, sources); empty rows where some
            evidence names none.
        distinct: whether sources were found to have no duplicates of their own.
        share: the upper bound behind that, or None where there was too little to say.
    """

    member: Any
    distinct: bool
    share: float | None

    def standing(self, pairs: Candidates) -> Standing:
        """What sources say of pairs."""
        first = _first_source(self.member)
        one, other = first[pairs.a], first[pairs.b]
        shared = pair_products(self.member, self.member, pairs.a, pairs.b) > 0
        places = [
            end * self.member.shape[1] + np.maximum(source, 0) for end, source in ((pairs.a, other), (pairs.b, one))
        ]
        rivals = np.unique(np.concatenate(places), return_inverse=True)[1].astype(np.int64)
        both = self.distinct & (one != NONE) & (other != NONE)
        return Standing(self.distinct & shared, both & ~shared, rivals[: len(one)], rivals[len(one) :])


@dataclass(frozen=True)
class Standing:
    """What sources say of pairs.

    Attributes:
        same: from a common source, which says that they are distinct (pairs,).
        competing: over two distinct sources; a topic has at most one match in the other source (pairs,).
        rivals_of_a: a number for a and b's source, among whose pairs a's match there is to be found (pairs,).
        rivals_of_b: a number, out of the same, for b and a's source (pairs,).
    """

    same: NDArray[np.bool_]
    competing: NDArray[np.bool_]
    rivals_of_a: Ints
    rivals_of_b: Ints


def learn_origins(corpus: Corpus, pairs: Candidates, rankings: NDArray[np.float64]) -> Origins:
    """Finds out whether sources repeat themselves.

    Args:
        corpus: the topics.
        pairs: candidate pairs.
        rankings: ways to rank pairs by agreement (rankings, pairs); the one that speaks clearest decides.
    """
    member = _membership(corpus)
    source = _first_source(member)
    among = np.flatnonzero((source[pairs.a] != NONE) & (source[pairs.b] != NONE))
    chance = _chance_within(corpus, source)
    if not len(among) or chance == 0 or chance == 1:
        return Origins(member, distinct=False, share=None)
    within = pair_products(member, member, pairs.a, pairs.b) > 0
    found = [bound for ranking in rankings for bound in _bounds(ranking, within, pairs, among, chance, len(corpus))]
    share = float(min(found)) if found else None
    return Origins(member, distinct=share is not None and share < MAX_SHARE, share=share)


def _membership(corpus: Corpus) -> Any:
    codes = corpus.sources["source"].rank("dense").cast(pl.Int64).to_numpy() - 1
    shape = (len(corpus), int(codes.max(initial=0)) + 1)
    return csr_matrix((np.ones(len(codes), np.float32), (corpus.sources["row"].to_numpy(), codes)), shape=shape)


def _first_source(member: Any) -> Ints:
    """The first source of each topic, NONE where it has none (topics,)."""
    has = np.diff(member.indptr) > 0
    first = np.full(member.shape[0], NONE, np.int64)
    first[has] = member.indices[member.indptr[:-1][has]]
    return first


def _chance_within(corpus: Corpus, source: Ints) -> float:
    """The share of a scope's pairs that lie within one source."""
    frame = corpus.topics.select("scope").with_columns(source=source).filter(pl.col("source") != NONE)
    pairs = pl.col("len").cast(pl.Float64) * (pl.col("len") - 1.0)
    total, own = (
        float(frame.group_by(key).len().select(pairs.sum()).item() or 0) for key in (["scope"], ["scope", "source"])
    )
    return own / total if total else 0.0


def _bounds(
    score: NDArray[np.float64],
    within: NDArray[np.bool_],
    pairs: Candidates,
    among: Ints,
    chance: float,
    topics: int,
) -> list[float]:
    """Upper bounds of the share within sources, over chance, among the best mutual pairs at each depth."""
    best = np.full(topics, -np.inf)
    for end in (pairs.a, pairs.b):
        np.maximum.at(best, end[among], score[among])
    mutual = among[(score[among] >= best[pairs.a[among]]) & (score[among] >= best[pairs.b[among]])]
    ranked = within[mutual[np.argsort(-score[mutual], kind="stable")]]
    counts = [(depth, int(ranked[:depth].sum())) for depth in DEPTHS if depth <= len(ranked)]
    return [(count + 2 + 2 * np.sqrt(count + 1)) / depth / chance for depth, count in counts]
