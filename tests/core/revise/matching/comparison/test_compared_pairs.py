"""Pairs compared in blocks, and some of them later, are what they are when compared at once."""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison import compared_pairs, contradictions
from memstate_core.revise.matching.comparison.compared_pairs import ComparedPairs, compared_candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from tests.core.revise.matching.catalogues import catalogues
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair
from tests.core.revise.matching.families import memories, store

STORES = {"memories": store(memories(), "typo").topics, "songs": catalogues("songs", 1, size=40).topics}


def compared(of: Corpus, pairs: Candidates) -> ComparedPairs:
    return compared_candidates(of, pairs, EarlierMerges.none(len(of)))[1]


def assert_same(one: Any, other: Any) -> None:
    """Of two results, all arrays, to the last bit, and all frames; single comparisons may stand in another order."""
    for name in (field.name for field in fields_of(one)):
        left, right = getattr(one, name), getattr(other, name)
        if name == "levels":
            assert single(left) == single(right)
        elif isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, err_msg=name)
        elif isinstance(left, pl.DataFrame):
            assert left.equals(right)
        elif name in ("pairs", "signs", "relations"):
            assert_same(left, right)


def single(levels: Any) -> list[tuple[int, ...]]:
    return sorted(zip(*(each.tolist() for each in levels.single(np.ones(len(levels), bool))), strict=True))


@pytest.mark.parametrize("topics", STORES.values(), ids=STORES)
def test_blocks_change_nothing(topics: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    of = corpus(topics)
    pairs = every_pair(of)
    whole, found = compared(of, pairs), dedupe(topics)
    assert whole.contradicts.any()
    monkeypatch.setattr(compared_pairs, "PAIRS_AT_ONCE", len(pairs) // 5)
    monkeypatch.setattr(contradictions, "ENDS_AT_ONCE", len(pairs) // 5)
    assert_same(compared(of, pairs), whole)
    in_blocks = dedupe(topics)
    np.testing.assert_array_equal(in_blocks.scored.probability, found.scored.probability)
    np.testing.assert_array_equal(in_blocks.groups, found.groups)


def test_what_comparisons_alone_derive_from_many_texts_goes_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    of = corpus(STORES["memories"])
    pairs, whole = every_pair(of), compared(corpus(STORES["memories"]), every_pair(of))
    monkeypatch.setattr(compared_pairs, "MANY_PAIRS", 0)
    comparer, found = compared_candidates(of, pairs, EarlierMerges.none(len(of)))
    assert_same(found, whole)
    kept = vars(of).keys()
    assert "title_units" in kept
    assert not kept & {"title_differences", "summary_texts", "field_texts", "remainder"}
    comparer.extended(found, pairs.where(np.zeros(len(pairs), bool)))
    assert "title_differences" not in vars(of)


def test_pairs_that_are_compared_later_stand_after_the_others() -> None:
    of = corpus(STORES["memories"])
    every, cut = every_pair(of), 300
    first, rest = (every.where(np.arange(len(every)) < cut), every.where(np.arange(len(every)) >= cut))
    comparer, known = compared_candidates(of, first, EarlierMerges.none(len(of)))
    found, whole = comparer.extended(known, rest), compared(of, every)
    np.testing.assert_array_equal(found.pairs.a, every.a)
    assert single(found.levels) == single(whole.levels)
    np.testing.assert_array_equal(found.signs.title, whole.signs.title)
    assert found.signs.fields.equals(whole.signs.fields)


def test_no_pairs_are_compared_as_well() -> None:
    of = corpus(STORES["memories"][:3])
    found = compared(of, every_pair(of).where(np.zeros(3, bool)))
    assert len(found.levels) == len(found.contradicts) == 0
