"""Which likely pairs count: all where the fit is believed, else identical ones and those that evidence singles out."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.comparison.comparisons import compare
from memstate_core.revise.matching.comparison.contradictions import contradiction
from memstate_core.revise.matching.comparison.identifiers import InCommon
from memstate_core.revise.matching.comparison.siblings import signs
from memstate_core.revise.matching.comparison.sources import Origins
from memstate_core.revise.matching.comparison.title_formats import learn_formats
from memstate_core.revise.matching.decision import LIFT, WITNESSES, Decision, decide
from memstate_core.revise.matching.earlier_merges import MERGED_FIELDS
from memstate_core.revise.matching.fit.fellegi_sunter import Scored
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair
from tests.core.revise.test_verdicts import judged, ledger

SURE, LIKELY = 0.9, 0.95
Topic = dict[str, Any]
TABLES: list[Topic] = [{"title": "Oak table"}, {"title": "Oak table varnished"}]
TRIPS: list[Topic] = [{"title": f"Trip to {place}"} for place in ("Oslo", "Graz", "Cork")]
STORY = "bought from the widow of a carpenter near Vezelay after the autumn fair of nineteen cobblers"


def decided(topics: list[Topic], refuted: bool = False) -> tuple[Decision, dict[tuple[int, int], int]]:
    """The decision where every pair with a word of the title in common is likely, and the place of each pair."""
    of = corpus(topics)
    pairs = every_pair(of)
    origins = Origins(csr_matrix((len(of), 1)), np.ones(1))
    relations = origins.relations(pairs)
    formats = learn_formats(of, pairs, np.zeros(len(pairs)), origins, relations)
    found = signs(of, pairs, compare(of, pairs).shared, formats, relations)
    likely = np.where(found.shared > 0, LIKELY, 0.01)
    nothing = np.zeros(len(pairs), bool)
    common = InCommon(nothing, nothing)
    contradicts = contradiction(found, pairs, relations, empty(MERGED_FIELDS), namesakes=nothing, common=common)
    scored = Scored(np.log(likely / (1 - likely)), likely)
    result = decide(
        of, found, contradicts, pairs, relations, scored, probability=likely,
        apart=nothing, namesakes=nothing, by_chance=nothing, earlier=0, refuted=refuted, sure=SURE,
    )  # fmt: skip
    return result, {pair: place for place, pair in enumerate(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))}


def test_a_longer_title_is_merged_where_nothing_contradicts() -> None:
    result, at = decided(TABLES)
    assert result.probability[at[0, 1]] == LIKELY
    assert result.contradicted == 0
    assert not result.held_back.any()


def test_a_longer_title_is_held_back_beside_siblings() -> None:
    result, at = decided([*TABLES, *TRIPS])
    assert result.contradicted == pytest.approx(2 / 3)
    assert np.flatnonzero(result.held_back).tolist() == [at[0, 1]]
    assert result.probability.max() < 0.1


def test_what_people_refuted_is_held_back_without_siblings_too() -> None:
    result, at = decided(TABLES, refuted=True)
    assert np.flatnonzero(result.held_back).tolist() == [at[0, 1]]
    assert result.probability.max() < 0.1


def test_identical_topics_are_merged_beside_siblings() -> None:
    result, at = decided([{"title": "Oak table"}, {"title": "oak TABLE."}, *TRIPS])
    assert np.flatnonzero(result.probability >= SURE).tolist() == [at[0, 1]]
    assert not result.held_back.any()


def test_an_identical_pair_is_recorded_with_the_probability_that_merged_it() -> None:
    """Condition C2 asks `merge_probability` of the strongest pair of each merge."""
    others = [{"title": f"Weekly report on {word} {n}"} for n in range(5) for word in ("water", "heat", "light")]
    found = dedupe([{"title": "Weekly report"}, {"title": "Weekly report"}, *others])
    (merged,) = np.flatnonzero(found.grouped)
    assert found.identical[merged]
    assert found.scored.weight[merged] - LIFT < np.log(9) <= found.scored.weight[merged]
    assert found.scored.probability[merged] >= SURE


def test_a_summary_that_no_other_topic_shares_singles_a_pair_out() -> None:
    tables = [table | {"summary": STORY} for table in TABLES]
    result, at = decided([*tables, *TRIPS])
    assert result.probability[at[0, 1]] == LIKELY
    shared, at = decided([*tables, *TRIPS, {"title": "Walnut table", "summary": STORY}])
    assert shared.probability[at[0, 1]] < SURE
    assert shared.held_back[at[0, 1]]


@pytest.mark.parametrize("witnesses", [WITNESSES - 1, WITNESSES])
def test_witnesses_outweigh_a_field_that_contradicts(witnesses: int) -> None:
    years = [{"title": "Deal with Anna", "fields": {"year": year}} for year in (2019, 2021)]
    result, at = decided([*years, *({"title": "Deal with Anna"} for _ in range(witnesses))])
    assert result.probability[at[0, 1]] == (np.nextafter(SURE, 0) if witnesses >= WITNESSES else 0)


@pytest.mark.parametrize(
    ("fields", "contradicts"),
    [
        ({"year": "2024"}, False),
        ({"year": 2024}, False),
        ({"year": "2025"}, True),
        ({"before": "Trip 2024"}, True),
        ({}, True),
    ],
)
def test_a_number_of_one_title_contradicts_unless_it_is_a_value_of_the_other_topic(
    fields: dict[str, Any], contradicts: bool
) -> None:
    result, at = decided([{"title": "Trip to Oslo 2024"}, {"title": "Trip to Oslo", "fields": fields}])
    assert result.contradicted == contradicts
    assert (result.probability[at[0, 1]] < SURE) == contradicts


def test_no_witness_outweighs_titles_that_contradict() -> None:
    trips = [{"title": "Trip to Oslo"}, {"title": "Trip to Graz"}]
    result, at = decided([*trips, *({"title": "Trip to"} for _ in range(WITNESSES + 2))])
    assert result.probability[at[0, 1]] == 0


@pytest.mark.parametrize("deals", [2, 5, 20])
def test_a_topic_that_lacks_the_field_joins_no_siblings(deals: int) -> None:
    years = [{"title": "Deal with Anna", "fields": {"year": 2000 + at}} for at in range(deals)]
    groups = dedupe([*years, {"title": "Deal with Anna"}]).groups
    assert all(groups[one] != groups[other] for one, other in combinations(range(deals), 2))


def guides(differing: range, siblings: int = 0) -> list[Topic]:
    """Restaurants in two guides, every fourth with a longer title in the second; some differ in one of three fields.

    The first has pairs of siblings besides, of which one has the longer title.
    """
    chance, topics = Random(7), list[Topic]()

    def word() -> str:
        return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(4))

    known = {name: [word() for _ in range(8)] for name in ("style", "district", "price")}
    for number in range(80):
        title, more = f"{word()} {word()}", f" {word()}" if number % 4 == 0 else ""
        fields = {name: chance.choice(values) for name, values in known.items()}
        changed = {[*fields][number % 3]: word()} if number in differing else {}
        topics.append({"title": title, "sources": ["fork"], "fields": fields})
        topics.append({"title": title + more, "sources": ["spoon"], "fields": fields | changed})
    for _ in range(siblings):
        title, fields = f"{word()} {word()}", {name: chance.choice(values) for name, values in known.items()}
        topics += [{"title": name, "sources": ["fork"], "fields": fields} for name in (title, f"{title} {word()}")]
    return topics


@pytest.mark.parametrize(
    ("differing", "siblings", "contradicted", "held_back"),
    [
        (range(0), 0, 0.0, 0),
        (range(1, 80, 7), 0, 0.0, 0),
        (range(0, 80, 8), 40, 0.125, 10),
        (range(0, 80, 8), 0, 0.125, 0),
    ],
    ids=["nowhere", "anywhere", "where titles differ", "where titles differ, but a guide has no siblings"],
)
def test_fields_that_differ_where_titles_are_the_same_say_nothing_of_siblings(
    differing: range, siblings: int, contradicted: float, held_back: int
) -> None:
    """One field or another differs in a seventh of the pairs; each for itself in too few to vary."""
    found = dedupe(guides(differing, siblings))
    assert found.decision.contradicted == pytest.approx(contradicted, abs=0.03)
    assert found.decision.held_back.sum() == held_back
    same = found.pairs.a[found.grouped] // 2 == found.pairs.b[found.grouped] // 2
    assert same.all()
    assert len(same) == 80 - len(differing) - held_back


def test_a_pair_judged_different_that_the_fit_would_merge_ends_the_deduction_for_chance() -> None:
    topics = guides(range(1, 80, 7), siblings=40)
    before = dedupe(topics)
    row = np.flatnonzero(before.grouped & ~before.identical)[0]
    verdict = judged(f"t{before.pairs.a[row]:05}", f"t{before.pairs.b[row]:05}", "different")
    after = dedupe(topics, constraints(ledger(verdict), empty(EVIDENCE_TOPIC)))
    assert before.decision.contradicted < 0.03
    assert after.decision.contradicted > 0.1
    assert after.decision.held_back.any()
