"""Comparisons of two topics and their agreement levels.

Level 0 is the least agreement, -1 means that there is nothing to compare. The levels of one comparison are
ordered: a higher level is never stronger evidence against a match than a lower one. Only the levels of `time`
are unordered; their weights come from the store's own pairs alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Floats, pair_products
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.texts.unit_overlap import Overlap

Levels = NDArray[np.int8]
Places = NDArray[np.int32]

NOTHING = -1
LEVELS = 10
"""The most levels that a comparison has."""
TITLE_EDGES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
SUMMARY_EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)
MEANING_EDGES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96)
FIELD_EDGES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.97)
SURPRISE_EDGES = (0.0, 3.0, 8.0)
"""Nats by which the shared units of two titles are rarer than expected by chance in the scope."""
FAR_NUMBERS, FAR_DAYS = 0.2, 10.0
"""Relative distance of numbers, and days between dates, from which values have nothing in common."""
MEASURED_STEPS = (0.2, 0.06, 0.02, 0.005, 0.001)
"""Relative distances up to which measured numbers are ever closer, by equal parts of CLOSEST.

The last digits of such numbers vary, and topics with one title often have some that are near, so how near says much."""
CLOSEST = 0.9
"""The similarity of the closest measured numbers that are not equal."""
TIME_EDGES = (1 / 24, 1.0, 7.0, 30.0, 365.0)
"""Days between the creation of the two topics."""
CONTAINED = 0.99
"""Containment of titles from which on nothing in one of them stands in place of something in the other."""
NEAR_TITLE = 0.6
"""Title similarity from which the rarity of shared units is compared."""
RARE_CODE = 5.0
"""Nats of rarity from which shared numbers and codes count as rare."""
STRATA = (0.4, 0.6)
"""Title similarities that separate the strata: pairs proposed for their titles seldom agree elsewhere by chance,
the rest were proposed for agreeing elsewhere, so u differs between strata."""

TEXT = ("title", "numbers", "rarity", "meaning", "rank")
"""Comparisons of the title; their joint weight is bounded by the rarity of the shared units."""


@dataclass(frozen=True)
class Agreement:
    """What one comparison gives.

    Attributes:
        pair: the positions of the pairs for which it could be made, ascending (made,).
        level: their levels of agreement (made,).
    """

    pair: Places
    level: Levels

    @classmethod
    def none(cls) -> Agreement:
        """That of a comparison which could be made for no pair."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int8))

    @classmethod
    def of_all(cls, level: Levels) -> Agreement:
        """That of a comparison whose level is NOTHING for the pairs for which it could not be made (pairs,)."""
        made = np.flatnonzero(level != NOTHING)
        return cls(made.astype(np.int32), level[made])


@dataclass(frozen=True)
class Compared:
    """Agreement levels of pairs.

    Attributes:
        names: the comparisons; those of fields are called `field:<name>`.
        made: what each of them gives (names,).
        stratum: by title similarity (pairs,).
        rankings: ways to rank pairs by agreement alone (rankings, pairs): by titles, and where there are several
            sources, by letters and by meaning.
        shared: nats of rarity that the titles share (pairs,).
        peers: how many topics the scope has (pairs,).
        same_title: whether the titles have the same words in the same order (pairs,).
        contained: whether nothing in one title stands in place of something in the other (pairs,).
    """

    names: tuple[str, ...]
    made: tuple[Agreement, ...]
    stratum: Levels
    rankings: NDArray[np.float64]
    shared: Floats
    peers: Places
    same_title: NDArray[np.bool_]
    contained: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.stratum)

    @property
    def surprise(self) -> NDArray[np.float64]:
        """Nats by which the shared units are rarer than chance among the scope's topics (pairs,)."""
        return np.asarray(self.shared - np.log(np.maximum(self.peers, 1)))

    def of(self, name: str) -> Agreement:
        """What one of the comparisons gives."""
        return self.made[self.names.index(name)]

    def single(self, chosen: NDArray[np.bool_]) -> tuple[Places, Places, Levels]:
        """The single comparisons of some pairs, in the order of `names` (three arrays (comparisons made,)).

        Args:
            chosen: the pairs (pairs,).

        Returns:
            The position of the pair, that in `names`, and the level.
        """
        kept = [chosen[each.pair] for each in self.made]
        pair = np.concatenate([each.pair[of] for each, of in zip(self.made, kept, strict=True)])
        level = np.concatenate([each.level[of] for each, of in zip(self.made, kept, strict=True)])
        return pair, np.repeat(np.arange(len(kept), dtype=np.int32), [of.sum() for of in kept]), level


def compare(corpus: Corpus, pairs: Candidates, values: pl.DataFrame | None = None) -> Compared:
    """Compares candidate pairs.

    Args:
        corpus: the topics.
        pairs: the pairs.
        values: the values of their fields (`Corpus.value_pairs`), where they are known already.
    """
    a, b = pairs.a, pairs.b
    overlap = corpus.title_units.overlap(a, b)
    letters = pair_products(corpus.title_groups, corpus.title_groups, a, b)
    similarity, containment = _title_similarity(letters, overlap)
    meaning = pair_products(corpus.vectors, corpus.vectors, a, b)
    peers = corpus.peers[a].astype(np.int32)
    surprise = overlap.shared - np.log(np.maximum(peers, 1))
    levels = {
        "title": _level(similarity, TITLE_EDGES),
        "numbers": _numbers(corpus, pairs),
        "rarity": np.where(similarity >= NEAR_TITLE, _level(surprise, SURPRISE_EDGES), NOTHING),
        "meaning": _level(meaning, MEANING_EDGES),
        "summary": _summary(corpus, pairs),
        "time": _time(corpus, pairs),
    }
    names = corpus.fields["name"].unique().sort().to_list()
    fields = _fields(corpus, corpus.value_pairs(a, b) if values is None else values, names)
    by_titles, others = similarity + 2 * containment, (letters, similarity + meaning)
    return Compared(
        names=(*levels, *(f"field:{name}" for name in names), "rank"),
        made=(*map(Agreement.of_all, levels.values()), *fields, Agreement.none()),
        stratum=_level(similarity, STRATA),
        rankings=np.stack([by_titles, *(others if corpus.several_sources else ())]).astype(np.float64),
        shared=overlap.shared,
        peers=peers,
        same_title=corpus.title_code[a] == corpus.title_code[b],
        contained=containment > CONTAINED,
    )


def ranked(compared: Compared, pairs: Candidates, eligible: NDArray[np.bool_], topics: int) -> Compared:
    """Adds the comparison `rank`: 2 when both topics are each other's nearest, 1 when one is, 0 otherwise.

    Pairs that cannot be matches are ranked among themselves, as if the others were not there: they are decoys.

    Args:
        compared: agreement levels.
        pairs: the same pairs.
        eligible: pairs that can be matches at all (pairs,).
        topics: how many topics there are.
    """
    level = np.zeros(len(pairs), np.int8)
    for among in (eligible, ~eligible):
        score, best = np.where(among, compared.rankings[0], -np.inf), np.full(topics, -np.inf)
        for end in (pairs.a, pairs.b):
            np.maximum.at(best, end, score)
        level += among * ((score >= best[pairs.a]).astype(np.int8) + (score >= best[pairs.b]))
    return _with_ranks(compared, Agreement(compared.of("title").pair, level))


def unranked(compared: Compared) -> Compared:
    """The same without the comparison `rank`."""
    return _with_ranks(compared, Agreement.none())


def _with_ranks(compared: Compared, ranks: Agreement) -> Compared:
    """The same with other levels of `rank`, which is the last comparison."""
    return replace(compared, made=(*compared.made[:-1], ranks))


def together(parts: Iterable[Compared]) -> Compared:
    """Several sets of pairs of one corpus, at least one, one after the other; each is read once."""
    flat: dict[str, list[NDArray[Any]]] = defaultdict(list)
    made: dict[str, list[Agreement]] = defaultdict(list)
    before = 0
    for part in parts:
        for column in ("stratum", "rankings", "shared", "peers", "same_title", "contained"):
            flat[column].append(getattr(part, column))
        for name, each in zip(part.names, part.made, strict=True):
            made[name].append(Agreement(each.pair + np.int32(before), each.level))
        before += len(part)
    whole = {column: np.concatenate(flat.pop(column), axis=-1) for column in list(flat)}  # joined parts are freed
    every = np.arange(before, dtype=np.int32)
    return Compared(tuple(made), tuple(_joined(made.pop(name), every) for name in list(made)), **whole)


def _joined(parts: Sequence[Agreement], every: Places) -> Agreement:
    """Parts one after the other; comparisons that all pairs have share the positions of these."""
    level = np.concatenate([part.level for part in parts])
    return Agreement(np.concatenate([part.pair for part in parts]) if len(level) < len(every) else every, level)


def _title_similarity(letters: Floats, overlap: Overlap) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of letter cosine, Jaccard index of units, and containment; and containment alone.

    Containment ignores one-sided additions: only units that replace each other count against it.
    """
    shared = overlap.shared.astype(np.float64)
    jaccard = shared / (shared + overlap.only_a + overlap.only_b + 1e-6)
    containment = shared / (shared + overlap.conflict + 1e-6)
    return (letters + jaccard + containment) / 3, containment


def _numbers(corpus: Corpus, pairs: Candidates) -> Levels:
    """Numbers, versions and codes of titles that both have some.

    0 none shared, 1 some shared and some in conflict, 2 few in conflict, 3 no conflict, 4 no conflict and the
    shared ones are rare, or one has a rare code to which the other adds letters, 5 both have a code that no third
    topic has.
    """
    overlap, titles = corpus.title_units.overlap(pairs.a, pairs.b, numeric=True), corpus.title_codes
    shared, conflict = overlap.shared, overlap.conflict
    both = (shared + overlap.only_a > 0.01) & (shared + overlap.only_b > 0.01)
    level = np.where(shared <= 0.01, 0, np.where(conflict > 0.3 * shared, 1, np.where(conflict > 0.01, 2, 3)))
    level = np.where(((level == 3) & (shared > RARE_CODE)) | titles.stems(pairs.a, pairs.b), 4, level)
    return np.where(titles.shared(pairs.a, pairs.b), 5, np.where(both, level, NOTHING)).astype(np.int8)


def _summary(corpus: Corpus, pairs: Candidates) -> Levels:
    matrix, enough = corpus.remainder
    level = _level(pair_products(matrix, matrix, pairs.a, pairs.b), SUMMARY_EDGES)
    return np.where(enough[pairs.a] & enough[pairs.b], level, NOTHING)


def _time(corpus: Corpus, pairs: Candidates) -> Levels:
    days = np.abs(corpus.created[pairs.a] - corpus.created[pairs.b])
    return np.where(np.isnan(days), NOTHING, _level(days, TIME_EDGES))


def _fields(corpus: Corpus, both: pl.DataFrame, names: Sequence[str]) -> list[Agreement]:
    """What the comparisons of fields give, by the similarities of the values of both sides (names,).

    Args:
        corpus: the topics.
        both: values of the same field of both topics (`Corpus.value_pairs`).
        names: of the fields, sorted.
    """
    days = (pl.col("day") - pl.col("day_b")).abs()
    dated = pl.when(days == 0).then(1.0).otherwise(_near(days / FAR_DAYS))
    same = pl.when(pl.col("text") == pl.col("text_b")).then(1.0)
    alike = both.select(
        "pair", "name", similarity=same.otherwise(pl.coalesce(dated, _numeric(corpus, both), "letters"))
    )
    alike = alike.sort("name", "pair")
    pair, level = alike["pair"].to_numpy().astype(np.int32), _level(alike["similarity"].to_numpy(), FIELD_EDGES)
    ends = [int(alike["name"].search_sorted(name, "right")) for name in names]
    return [Agreement(pair[slice(*part)].copy(), level[slice(*part)].copy()) for part in pairwise([0, *ends])]


def _numeric(corpus: Corpus, both: pl.DataFrame) -> pl.Expr:
    """The similarity of two numbers, by their relative distance (arguments as of `_fields`)."""
    one, other = pl.col("number"), pl.col("number_b")
    distance = (one - other).abs() / pl.max_horizontal(one.abs(), other.abs(), 1e-12)
    measured = np.logical_and(*(corpus.measured[both[side].to_numpy()] for side in ("value", "value_b")))
    steps = pl.sum_horizontal(*((distance <= far).cast(pl.Float64) for far in MEASURED_STEPS)) / len(MEASURED_STEPS)
    close = pl.when(pl.Series(measured)).then(CLOSEST * steps).otherwise(_near(distance / FAR_NUMBERS))
    return pl.when(one == other).then(1.0).otherwise(close)


def _near(distance: pl.Expr) -> pl.Expr:
    """Similarity of values that can be close without being equal, from 0.8 down to 0 at a distance of 1."""
    return 0.8 * (1 - distance).clip(lower_bound=0)


def _level(values: Floats | NDArray[np.float64], edges: tuple[float, ...]) -> Levels:
    return np.digitize(values, edges).astype(np.int8)
