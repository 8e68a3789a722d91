"""Pairs within duplicate-free sources show how many siblings there are over two, and whether the fit is believed."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.belief.belief import MOST_CONTRADICTED
from memstate_core.revise.matching.belief.decoys import hidden_siblings
from memstate_core.revise.matching.comparison.sources import Origins, upper_bound
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair

Topic = dict[str, Any]
Compared = tuple[int, int, str, bool, bool]
SIZES = (6, 4)
LIKELY = float(np.log(99))


def estimated(decoys: dict[tuple[int, int], float], fields: list[Compared], links: int) -> float:
    """Siblings that are expected over two sources of six and four topics.

    Args:
        decoys: weights of pairs within a source.
        fields: of pairs: both topics, name, whether the values contradict each other, whether they are the same.
        links: how many topics of the first source are likely the same as one of the second.
    """
    pairs = every_pair(corpus([{"title": "Acme"} for _ in range(sum(SIZES))]))
    at = {ends: place for place, ends in enumerate(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))}
    member = csr_matrix(np.repeat(np.eye(2), SIZES, axis=0))
    relations = Origins(member, np.full(2, 0.1)).relations(pairs)
    likely = {(place, SIZES[0] + place): LIKELY for place in range(links)}
    weight = np.full(len(pairs), -LIKELY)
    for ends, value in (decoys | likely).items():
        weight[at[ends]] = value
    rows = [(at[one, other], *said) for one, other, *said in fields]
    schema = {"pair": pl.Int64, "name": pl.String, "contradicts": pl.Boolean, "same": pl.Boolean}
    linked = relations.same | (weight > 0)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    found = hidden_siblings(pairs, relations, weight, frame, linked, matches=links, sure=0.9)
    each = 24 / (15 + 6) * (1 - 2 * links / 10) ** 2
    assert found.at_most == pytest.approx(upper_bound(found.expected / each) * each)
    return found.expected / each


def test_each_decoy_stands_for_the_pairs_over_sources_in_proportion() -> None:
    assert estimated({}, [], 1) == 0
    assert estimated({(0, 1): LIKELY}, [], 1) == pytest.approx(1)
    assert estimated({(0, 1): LIKELY, (6, 7): LIKELY}, [], 2) == pytest.approx(2)


def test_a_contradiction_counts_as_often_as_it_would_be_seen() -> None:
    decoy, year = {(0, 1): LIKELY}, (0, 1, "year", True, False)
    assert estimated(decoy, [year], 2) == pytest.approx(1), "the other source has no years"
    assert estimated(decoy, [year, (0, 6, "year", False, True)], 2) == pytest.approx(0.5)
    assert estimated(decoy, [year, (0, 6, "year", False, False)], 2) == pytest.approx(1), "cannot be compared"
    both = [(0, 6, "year", False, True), (1, 7, "year", True, False)]
    assert estimated(decoy, [year, *both], 2) == pytest.approx(0, abs=1e-9)


def test_one_of_several_like_siblings_is_never_taken() -> None:
    assert estimated({(0, 1): LIKELY, (0, 2): LIKELY}, [], 1) == 0
    assert estimated({(0, 1): 2 * LIKELY, (0, 2): 0.0}, [], 1) == pytest.approx(1)


def spoken(chance: Random, syllables: int) -> str:
    """A made word."""
    return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(syllables))


def registers(siblings: int, *, things: int = 240, longer: int = 4) -> list[Topic]:
    """Two registers of people without duplicates, of which the second has a middle name in some titles.

    In half of those it has another street. Some people of the first register, who are not in the second, have a
    namesake with a middle name in their street.

    Args:
        siblings: how many.
        things: people in both registers.
        longer: one title in so many has a middle name.
    """
    chance, topics = Random(5), list[Topic]()
    word = partial(spoken, chance, 4)
    streets = [word() for _ in range(12)]
    for thing in range(things):
        name, street = f"{word()} {word()}", chance.choice(streets)
        other = {"street": word() if thing % (2 * longer) == 0 else street}
        title = f"{name} {word()}" if thing % longer == 0 else name
        topics.append({"title": name, "fields": {"street": street}, "id": f"a{thing:05}"})
        topics.append({"title": title, "fields": other, "id": f"b{thing:05}"})
    for _ in range(siblings):
        name, fields = f"{word()} {word()}", {"street": chance.choice(streets)}
        for title in (name, f"{name} {word()}"):
            topics.append({"title": title, "fields": fields, "id": f"c{len(topics):05}"})
    return [topic | {"sources": ["two" if topic["id"][0] == "b" else "one"]} for topic in topics]


def merged(topics: list[Topic]) -> tuple[int, int, int]:
    """How many pairs of a store are merged, how many of them are wrong, and how many are held back."""
    found, ids = dedupe(topics), sorted(topic["id"] for topic in topics)
    ends = zip(found.pairs.a[found.grouped], found.pairs.b[found.grouped], strict=True)
    right = [ids[a][1:] == ids[b][1:] and ids[a][0] + ids[b][0] == "ab" for a, b in ends]
    return len(right), right.count(False), int(found.decision.held_back.sum())


def test_errors_of_a_source_are_no_siblings_where_clean_sources_show_none() -> None:
    """Half of the longer titles contradict each other elsewhere, one link in eight."""
    found = dedupe(registers(0))
    assert 0.1 < found.decision.contradicted < 1 / 3
    assert merged(registers(0)) == (240 - 30, 0, 0)


def test_contradictions_in_more_than_a_third_are_believed_to_be_no_errors() -> None:
    """Every title is longer, and half of them contradict each other."""
    assert dedupe(registers(0, longer=1)).decision.contradicted > MOST_CONTRADICTED
    assert merged(registers(0, longer=1)) == (0, 0, 120)


def test_the_same_errors_are_held_against_the_fit_where_clean_sources_show_siblings() -> None:
    found, false, held_back = merged(registers(40))
    assert (found, false) == (180, 0), "those with one title"
    assert held_back >= 30


def test_nothing_over_sources_is_merged_where_clean_sources_show_more_siblings_than_pairs() -> None:
    assert merged(registers(120, things=80)) == (0, 0, 70)


def people(dated: bool) -> list[Topic]:
    """Two registers that share a third of their people; names and towns recur, dates of birth do not.

    Args:
        dated: whether the second register states dates of birth.
    """
    chance, topics = Random(8), list[Topic]()
    sounds = [spoken(chance, 3) for _ in range(60)]
    for thing in range(900):
        name = f"{chance.choice(sounds[:30])} {chance.choice(sounds[30:])}"
        fields = {"town": chance.choice(sounds[:4])}
        born = {"born": f"{chance.randrange(1930, 2005)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"}
        for source, said in (("one", fields | born), ("two", fields | born if dated else fields)):
            if thing % 3 == 0 or source == ("one", "two")[thing % 3 - 1]:
                own = {"id": f"{'ab'[source == 'two']}{thing:05}", "sources": [source]}
                topics.append({"title": name, "fields": said} | own)
    return topics


def test_namesakes_are_merged_only_if_something_distinguishes_them_in_both_registers() -> None:
    assert merged(people(dated=True)) == (300, 0, 0)
    found, false, held_back = merged(people(dated=False))
    assert (found, false) == (0, 0)
    assert held_back > 100


def test_what_one_register_leaves_out_distinguishes_no_people_over_both() -> None:
    """The other distinguishes all of its own people by it, yet a quarter of those with one name have one town."""
    found, ids = dedupe(people(dated=False)), sorted(topic["id"] for topic in people(dated=False))
    doubtful = found.pairs.where(found.chance.doubtful)
    false = sum(ids[a][1:] != ids[b][1:] for a, b in zip(doubtful.a, doubtful.b, strict=True))
    assert 0.8 * false < found.chance.expected < 1.3 * false


def movers() -> list[Topic]:
    """Two registers that share half of their people, of whom two in five have moved between the two."""
    chance, topics = Random(8), list[Topic]()
    sounds = [spoken(chance, 3) for _ in range(70)]
    for thing in range(900):
        name = f"{chance.choice(sounds[:30])} {chance.choice(sounds[30:60])}"
        fields = {"town": chance.choice(sounds[60:]), "born": f"{chance.randrange(1930, 1945)}"}
        moved = fields | ({"town": chance.choice(sounds[60:])} if chance.random() < 0.4 else {})
        for source, said in (("one", fields), ("two", moved)):
            if thing % 2 == 0 or source == ("one", "two")[thing % 4 == 1]:
                own = {"id": f"{'ab'[source == 'two']}{thing:05}", "sources": [source]}
                topics.append({"title": name, "fields": said} | own)
    return topics


def test_people_who_moved_are_no_sign_of_namesakes_where_registers_show_how_many_there_are() -> None:
    found, false, _ = merged(movers())
    assert found > 250
    assert false <= 0.05 * found
    assert dedupe(movers()).chance.expected < 3 * max(false, 1) + 5


def residents(seed: int) -> list[Topic]:
    """Two registers that share a third of their people; one in five entries has a date of birth."""
    chance, topics = Random(seed), list[Topic]()
    first, last, towns = ([spoken(chance, 3) for _ in range(count)] for count in (60, 60, 16))
    for thing in range(900):
        name, town = f"{chance.choice(first)} {chance.choice(last)}", chance.choice(towns)
        born = f"{chance.randrange(1930, 2005)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        for source in ("one", "two"):
            if thing % 3 == 0 or source == ("one", "two")[thing % 3 - 1]:
                fields = {"town": town} | ({"born": born} if chance.random() < 0.2 else {})
                own = {"id": f"{'ab'[source == 'two']}{thing:05}", "sources": [source]}
                topics.append({"title": name, "fields": fields} | own)
    return topics


@pytest.mark.slow
def test_equal_people_of_one_register_show_how_many_are_mistaken_over_two() -> None:
    """Nothing in which they differ is stated of some namesakes, so a few of the pairs that are merged are wrong."""
    stores = [residents(seed) for seed in (0, 1, 3, 4, 5, 7, 8)]
    found = [dedupe(topics) for topics in stores]
    assert all(each.origins.distinct.any() for each in found)
    false = sum(merged(topics)[1] for topics in stores)
    expected = sum(each.doubt[each.grouped].sum() for each in found)
    assert 5 < false < 2 * expected < 4 * false


def test_no_more_of_the_merged_pairs_are_expected_to_be_mistaken_than_chance_gives() -> None:
    """Namesakes with popular names are left to people, so those within a register say little about rare names."""
    chance, topics = Random(3), people(dated=False)
    towns = [spoken(chance, 3) for _ in range(4)]
    for thing in range(40):
        said = {"title": f"{spoken(chance, 5)} {spoken(chance, 5)}", "fields": {"town": chance.choice(towns)}}
        topics += [said | {"id": f"{'ab'[at]}{90_000 + thing}", "sources": [("one", "two")[at]]} for at in (0, 1)]
    found, (pairs, false, _) = dedupe(topics), merged(topics)
    assert found.decision.namesakes * pairs > 5
    assert false <= found.doubt[found.grouped].sum() + 1 < 2
