"""The fitted model: what its probabilities may depend on, and how its weights behave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.revise.matching.comparison.comparisons import STRATA, compare, ranked
from memstate_core.revise.matching.fit.fellegi_sunter import MAX_WEIGHT, OTHER_PAIRS, contributions, explained
from memstate_core.revise.matching.fit.priors import MATCH_RATE, TEMPER, UNORDERED, level_prior, levels_of, others_prior
from tests.core.revise.matching.corpora import corpus, every_pair
from tests.core.revise.matching.fits import Topic, fitted, shop, stores

# What a probability may depend on


def test_a_fit_is_the_same_every_time() -> None:
    one, again = fitted(shop()), fitted(shop())
    assert one.model == again.model
    np.testing.assert_array_equal(one.scored.probability, again.scored.probability)


@pytest.mark.slow
@pytest.mark.parametrize("distinct", [False, True])
@given(order=st.permutations(range(40)))
@settings(max_examples=8)
def test_probabilities_do_not_depend_on_ids_or_their_order(distinct: bool, order: list[int]) -> None:
    plain = fitted(shop(), distinct=distinct)
    renamed = {topic["id"]: f"r{order[number]:03}" for number, topic in enumerate(shop())}
    other = fitted([topic | {"id": renamed[topic["id"]]} for topic in shop()], distinct=distinct)
    ids = plain.of.topics["id"].to_list()
    for a, b, expected in zip(plain.pairs.a, plain.pairs.b, plain.scored.probability, strict=True):
        assert other.probability(renamed[ids[a]], renamed[ids[b]]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@given(stores, st.booleans())
@settings(max_examples=50)
def test_probabilities_are_probabilities(topics: list[Topic], distinct: bool) -> None:
    found = fitted(topics, distinct=distinct)
    assert ((found.scored.probability >= 0) & (found.scored.probability <= 1)).all()
    assert np.isfinite(found.scored.weight).all()
    assert (found.scored.probability[found.relations.same] == 0).all()
    assert 0 < found.model.match_rate < 1


def test_true_pairs_come_before_all_others() -> None:
    found = fitted(shop())
    ids = found.of.topics["id"].to_list()
    true = np.array([ids[a][1:] == ids[b][1:] for a, b in zip(found.pairs.a, found.pairs.b, strict=True)])
    assert found.scored.probability[true].min() > found.scored.probability[~true].max()


def test_known_differences_count_against_a_match() -> None:
    ids = corpus(shop()).topics["id"].to_list()
    pairs = every_pair(corpus(shop()))
    true = np.array([ids[a][1:] == ids[b][1:] for a, b in zip(pairs.a, pairs.b, strict=True)])
    plain, informed = fitted(shop()), fitted(shop(), different=true)
    assert informed.model.match_rate < plain.model.match_rate
    assert (informed.scored.weight[true] < plain.scored.weight[true]).all()


# Weights


@pytest.mark.parametrize("topics", [shop(), shop(12), [{"title": "Acme"}] * 3], ids=["40", "12", "3"])
def test_weights_rise_with_levels_and_are_bounded(topics: list[Topic]) -> None:
    found = fitted(topics)
    for name in found.model.comparisons:
        weights = found.weights(name)
        assert weights.shape == (len(STRATA) + 1, levels_of(name))
        assert np.abs(weights).max() <= MAX_WEIGHT
        assert name in UNORDERED or (np.diff(weights, axis=1) >= -1e-9).all()
    assert explained(found.model).keys() == {*found.model.comparisons}


def test_conflicting_numbers_are_always_evidence_against() -> None:
    """Even in a store where all matches differ in a number."""
    topics = [{"title": f"{topic['title']} {number}"} for number, topic in enumerate(shop())]
    weights = fitted(topics).weights("numbers")
    assert (weights[:, 0] <= -2.5).all()
    assert (weights[:, 1] <= -0.5).all()


def test_three_topics_are_too_few_to_leave_the_priors() -> None:
    """The shares of levels among matches and among other candidates stay near what they are in general."""
    found = fitted([{"title": title} for title in ("Quartz lagoon", "Basalt meadow", "Copper fjord")])
    levels = found.compared.of("title").level
    chance = (np.bincount(levels, minlength=10) + OTHER_PAIRS * others_prior("title")) / (len(levels) + OTHER_PAIRS)
    prior = level_prior("title")
    assert prior is not None
    expected = np.log(prior / chance)
    assert found.weights("title")[0].mean() == pytest.approx(np.average(expected), abs=0.4)
    assert found.weights("title")[0][-1] == pytest.approx(expected[-1], abs=0.2)
    assert found.model.match_rate == pytest.approx(1 / 23, abs=0.01)
    assert found.scored.probability.max() < MATCH_RATE


def test_a_comparison_that_the_model_does_not_know_adds_nothing() -> None:
    plain = fitted([topic | {"fields": {}} for topic in shop()])
    of = corpus([topic | {"fields": {"shoe": 7}} for topic in shop()])
    known, pairs = plain.compared, every_pair(of)
    wider = ranked(compare(of, pairs), pairs, ~plain.relations.same, len(of))
    assert "field:shoe" in {*wider.names} - {*known.names}
    pair, comparison, level = wider.single(np.ones(len(wider), bool))
    added = contributions(plain.model, wider, pair, comparison, level)
    assert (added[comparison == wider.names.index("field:shoe")] == 0).all()
    assert added[comparison == wider.names.index("title")].any()


def test_temper_names_comparisons_that_exist() -> None:
    assert {*TEMPER} <= {*fitted(shop()).model.comparisons}
