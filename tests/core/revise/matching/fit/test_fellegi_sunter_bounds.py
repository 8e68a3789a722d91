"""Bounds of a match: the rarity of titles, competitors in a distinct source, merged pairs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from memstate_core.revise.matching.comparison.comparisons import STRATA
from memstate_core.revise.matching.earlier_merges import MERGED_LEVELS
from memstate_core.revise.matching.fit.priors import ceiling
from tests.core.revise.matching.fits import Topic, fitted, shop, stores

# Titles alone

NEAR = [{"id": "x", "title": "Quartz lagoon harvest"}, {"id": "y", "title": "Quartz lagoon harvests"}]


def test_titles_that_differ_never_suffice_by_themselves_unless_two_sources_compete() -> None:
    others = [{"title": topic["title"]} for topic in shop()]
    open_ = fitted([*NEAR, *others]).probability("x", "y")
    rivals = [topic | {"sources": [source]} for topic, source in zip(NEAR, ("crm", "erp"), strict=True)]
    assert open_ <= 0.5
    assert fitted([*rivals, *others], distinct=True).probability("x", "y") > open_


def test_the_weight_of_equal_titles_is_bounded_by_their_rarity() -> None:
    others = [{"title": f"Plan {topic['title'].split()[0]}"} for topic in shop()]
    rare = fitted([{"id": "x", "title": "Quartz lagoon"}, {"id": "y", "title": "Quartz lagoon"}, *others])
    common = fitted([{"id": "x", "title": "Plan"}, {"id": "y", "title": "Plan"}, *others])
    assert rare.probability("x", "y") > common.probability("x", "y")
    assert common.probability("x", "y") < 0.5
    bound = 1 / (1 + np.exp(-ceiling(common.compared.surprise, common.compared.same_title)))
    assert (common.scored.probability <= bound + 1e-9).all()


# Rivals


@pytest.mark.slow
@given(stores)
@settings(max_examples=40)
def test_the_matches_of_a_topic_in_a_distinct_source_share_one_probability(topics: list[Topic]) -> None:
    found = fitted([*topics, *({"title": topic["title"], "id": f"z{topic['id']}"} for topic in shop())], distinct=True)
    source = dict(found.of.sources.select("row", "source").iter_rows())
    total: dict[tuple[int, str], float] = {}
    for a, b, p in zip(found.pairs.a.tolist(), found.pairs.b.tolist(), found.scored.probability, strict=True):
        for one, other in ((a, b), (b, a)):
            if one in source and other in source:
                total[one, source[other]] = total.get((one, source[other]), 0.0) + p
    assert all(value <= 1 + 1e-9 for value in total.values())


@pytest.mark.parametrize("ids", [("a", "b", "c"), ("b", "a", "c"), ("c", "a", "b")])
def test_two_equal_rivals_get_half_each_wherever_their_ids_sort(ids: tuple[str, str, str]) -> None:
    own, one, other = ids
    twins = [{"id": name, "title": "Quartz lagoon harvest 7", "sources": ["erp"]} for name in (one, other)]
    mine = {"id": own, "title": "Quartz lagoon harvest 7", "sources": ["crm"]}
    found = fitted([mine, *twins, *({"title": topic["title"]} for topic in shop())], distinct=True)
    assert found.probability(own, one) == pytest.approx(found.probability(own, other))
    assert 0.4 < found.probability(own, one) < 0.5


# Merged pairs


def merged(name: str, level: int, *, probability: float, count: int = 25) -> pl.DataFrame:
    rows = [(pair, name, level, len(STRATA), probability) for pair in range(count)]
    return pl.DataFrame(rows, schema=MERGED_LEVELS, orient="row")


@pytest.mark.parametrize(("name", "level"), [("title", 5), ("rank", 0), ("field:maker", 0), ("field:maker", 6)])
def test_merged_pairs_move_the_weights_in_their_direction(name: str, level: int) -> None:
    against, plain, towards = (
        fitted(shop(), merged=given).weights(name)[-1, level]
        for given in (merged(name, level, probability=0.0), None, merged(name, level, probability=1.0))
    )
    assert against < plain < towards


def test_merged_pairs_say_nothing_by_comparisons_that_no_longer_exist() -> None:
    gone, known = (merged(name, 6, probability=1.0) for name in ("field:shoe", "field:maker"))
    models = [fitted(shop(), merged=given).model for given in (None, gone, known)]
    assert models[0].match_rate < models[1].match_rate == pytest.approx(models[2].match_rate, rel=0.05)
    shoe = fitted(shop(), merged=merged("shoe", 0, probability=1.0)).model
    assert models[1] == shoe != models[2]
