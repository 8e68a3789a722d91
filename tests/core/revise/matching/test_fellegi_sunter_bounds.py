"""Bounds of a match: the rarity of titles, competitors in a distinct source, verdicts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from memstate_core.revise.matching.comparisons import STRATA
from memstate_core.revise.matching.priors import ceiling
from tests.core.revise.matching.corpora import NO_VERDICTS
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


# Verdicts


def verdicts(name: str, level: int, *, same: bool, count: int = 5) -> pl.DataFrame:
    rows = [{"name": name, "level": level, "stratum": len(STRATA), "same": same}] * count
    return pl.DataFrame(rows, schema=NO_VERDICTS.schema)


@pytest.mark.parametrize(("name", "level"), [("title", 5), ("rank", 0), ("field:maker", 0), ("field:maker", 6)])
def test_verdicts_move_the_weights_in_their_direction(name: str, level: int) -> None:
    against, plain, towards = (
        fitted(shop(), verdicts=given_verdicts).weights(name)[-1, level]
        for given_verdicts in (verdicts(name, level, same=False), NO_VERDICTS, verdicts(name, level, same=True))
    )
    assert against < plain < towards


def test_verdicts_on_comparisons_that_no_longer_exist_are_ignored() -> None:
    given_verdicts = verdicts("field:shoe", 6, same=True)
    assert fitted(shop(), verdicts=given_verdicts).model == fitted(shop()).model
