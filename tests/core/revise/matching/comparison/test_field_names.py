"""Fields that sources call by names of their own: found by their values, compared as one field."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.comparison.field_names import MIN_PAIRS, common_names, with_common_names
from memstate_core.revise.scope_matches import ScopeMatches
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.test_verdicts import ledger

Topic = dict[str, Any]
OWN = {"year": "released", "director": "directed_by", "city": "seat"}
"""The names that the second list uses for the fields of the first."""


def films(things: int = 60, *, names: dict[str, str] = OWN, seed: int = 3) -> list[Topic]:
    """Two lists of the same films; one in four is a remake of the film before it, with its title and nothing else."""
    chance, topics, title = Random(seed), list[Topic](), ""
    for thing in range(things):
        title = title if thing % 4 == 3 else f"{_word(chance)} {_word(chance)}"
        fields = {"year": str(chance.randrange(1930, 2020)), "director": f"{_word(chance)} {_word(chance)}"}
        fields |= {"city": _word(chance)}
        topics.append({"title": title, "fields": fields, "sources": ["one"]})
        topics.append({"title": title, "fields": {names.get(of, of): said for of, said in fields.items()}})
        topics[-1]["sources"] = ["two"]
    return topics


def _word(chance: Random) -> str:
    return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3))


def test_names_of_one_field_are_found_by_its_values() -> None:
    assert common_names(corpus(films())) == {"year": "released", "director": "directed_by", "seat": "city"}


def test_titles_with_their_words_in_another_order_show_names_too() -> None:
    """As those of people do: `Oscar Callahan`, `CALLAHAN, Oscar`."""
    topics = films()
    for topic in topics[1::2]:
        topic["title"] = ", ".join(reversed(topic["title"].upper().split()))
    assert common_names(corpus(topics)) == {"year": "released", "director": "directed_by", "seat": "city"}


def test_names_of_the_same_letters_are_those_of_one_field() -> None:
    names = ("Screen Size", "screen_size", "screenSize", "année", "Année", "+", "-")
    of = corpus([{"title": f"Lamp {place}", "fields": {name: "9"}} for place, name in enumerate(names)])
    assert common_names(of) == {"screen_size": "Screen Size", "screenSize": "Screen Size", "année": "Année"}


def test_a_topic_with_two_names_of_the_same_letters_has_two_fields() -> None:
    topics = [{"title": "Lamp", "fields": {"Size": "9", "size": "12"}}, {"title": "Lamp", "fields": {"SIZE": "9"}}]
    assert common_names(corpus(topics)) == {}


def test_a_name_of_the_same_letters_gets_the_name_that_values_show() -> None:
    topics = films()
    for topic in topics[:20:2]:
        topic["fields"]["Year"] = topic["fields"].pop("year")
    assert common_names(corpus(topics)) == {
        "year": "Year",
        "released": "Year",
        "director": "directed_by",
        "seat": "city",
    }


def test_too_few_values_show_nothing() -> None:
    topics = films()
    for topic in topics[MIN_PAIRS:]:
        topic["fields"].pop("seat", None)
    assert "seat" not in common_names(corpus(topics))


def test_a_source_that_has_both_names_has_two_fields() -> None:
    topics = films()
    topics[0]["fields"]["released"] = "1950"
    assert common_names(corpus(topics)) == {"director": "directed_by", "seat": "city"}


def test_of_two_fields_of_a_source_the_one_that_agrees_more_often_is_the_other_source_s() -> None:
    topics = films()
    for place, topic in enumerate(topics[::2]):
        topic["fields"]["birthplace"] = topic["fields"]["city"] if place % 2 else f"Place {place}"
    assert common_names(corpus(topics)) == {"year": "released", "director": "directed_by", "seat": "city"}


def test_fields_that_agree_no_more_than_at_random_stay_two() -> None:
    topics = films()
    for topic in topics[::2]:
        topic["fields"]["language"] = "English"
    for topic in topics[1::2]:
        topic["fields"]["dubbed"] = "English"
    assert not {"language", "dubbed"} & common_names(corpus(topics)).keys()


@pytest.mark.parametrize(
    ("written", "found"),
    [("{}, Italy", True), ("Via {} 12, 3rd floor on the left, Italy", False)],
    ids=["a city and its country", "the city of a long address"],
)
def test_a_value_may_have_more_words(written: str, found: bool) -> None:
    topics = films()
    for topic in topics[1::2]:
        topic["fields"]["seat"] = written.format(topic["fields"]["seat"])
    assert ("seat" in common_names(corpus(topics))) == found


def test_merged_topics_show_it() -> None:
    """Each film of both lists is one topic already, but for some of one list alone, which show whose a name is."""
    topics = films(80)
    merged = [
        one | {"fields": one["fields"] | other["fields"], "sources": ["one", "two"]}
        for one, other in zip(topics[:120:2], topics[1:120:2], strict=True)
    ]
    alone = [topic | {"title": f"{topic['title']} {place}"} for place, topic in enumerate(topics[120:])]
    assert common_names(corpus([*merged, *alone])) == {"year": "released", "director": "directed_by", "seat": "city"}


def test_of_two_values_under_one_name_the_first_stays() -> None:
    of = corpus([{"title": "Rome", "fields": {"city": "Rome", "seat": "Roma", "year": "1972"}}, {"title": "Oslo"}])
    renamed = with_common_names(of, {"seat": "city"})
    assert renamed.fields.select("row", "name", "text").rows() == [(0, "city", "Rome"), (0, "year", "1972")]
    assert with_common_names(of, {}) is of


def test_remakes_stay_apart_whatever_sources_call_their_fields() -> None:
    """The pairs that are merged are those of a store in which both lists use the same names, and all are right."""
    own, same = (dedupe(films(names=names)) for names in (OWN, {}))
    assert own.field_names
    assert not same.field_names
    ends = [(found.pairs.a[found.grouped], found.pairs.b[found.grouped]) for found in (own, same)]
    merged = [set(zip(*each, strict=True)) for each in ends]
    assert merged[0] == merged[1] == {(2 * thing, 2 * thing + 1) for thing in range(60)}


def test_the_readings_of_merges_have_fields_of_two_names() -> None:
    topics = films()
    found = dedupe(topics)
    sure, doubtful = (np.full(len(found.pairs), bound) for bound in (0.9, 0.2))
    limits = constraints(ledger(), empty(EVIDENCE_TOPIC))
    pairs = ScopeMatches("user:aya", corpus(topics), found, sure, doubtful, limits).pairs
    read = pairs["reading"].drop_nulls().struct.unnest()
    agreed = ("title", "field:city", "field:directed_by", "field:released")
    assert {tuple(each) for each in read["agree"]} == {agreed}
    assert read["only"].list.len().sum() == 0
