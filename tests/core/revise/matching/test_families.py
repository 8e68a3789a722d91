"""Siblings are never merged, whatever they share; rewritten copies among them are merged or put into review."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memstate_core.revise.matching.deduplication import PROBABLE, Deduplicated
from memstate_core.revise.scope_matches import alike
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import (
    REWRITINGS,
    SLOTS,
    TEMPLATES,
    Store,
    crowd,
    deals,
    family,
    households,
    meetings,
    memories,
    namesakes,
    sayings,
    store,
)


def found_in(made: Store) -> tuple[Deduplicated, NDArray[np.bool_], NDArray[np.bool_]]:
    """What is found, and for each pair whether it is merged and whether it is of one thing."""
    found = dedupe([{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)])
    things = np.array(made.things)
    return found, found.grouped, things[found.pairs.a] == things[found.pairs.b]


def false_merges(made: Store) -> list[tuple[str, str]]:
    """Titles of topics in one group that are not one thing."""
    groups, things = found_in(made)[0].groups, np.array(made.things)
    parts = [np.flatnonzero(groups == number) for number in np.flatnonzero(np.bincount(groups) > 1)]
    pairs = [(a, b) for part in parts for a, b in combinations(part, 2) if things[a] != things[b]]
    return [(made.topics[a]["title"], made.topics[b]["title"]) for a, b in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 25])
@pytest.mark.parametrize("slot", sorted(SLOTS))
def test_siblings_stay_apart_beside_identical_copies(slot: str, size: int) -> None:
    """Copies are merged where the title is more than the name, number or date that distinguishes the siblings."""
    topics = [topic for template in range(len(TEMPLATES)) for topic in family(slot, template, size)]
    made = store([*topics, *crowd(40)], "same")
    found, merged, same = found_in(made)
    bare = {SLOTS[slot](number) for number in range(size)}
    identifying = np.array([made.topics[row]["title"] not in bare for row in found.pairs.a])
    assert false_merges(made) == []
    assert merged[same & identifying].all()


def test_a_large_family_stays_apart() -> None:
    assert false_merges(store([*family("number", 0, 200), *family("language", 1, 200)], "same", every=9)) == []


@pytest.mark.parametrize("size", [pytest.param(120, marks=pytest.mark.slow), 300])
def test_titles_that_add_a_word_in_a_family_stay_apart(size: int) -> None:
    assert false_merges(store(sayings(size))) == []


@pytest.mark.slow
@pytest.mark.parametrize("rewriting", sorted(REWRITINGS))
@pytest.mark.parametrize("slot", ["name", "number"])
def test_rewritten_siblings_are_merged_or_put_into_review(slot: str, rewriting: str) -> None:
    topics = [topic for template in (0, 2, 4) for topic in family(slot, template, 12)]
    made = store([*topics, *crowd(60)], rewriting)
    found, merged, same = found_in(made)
    assert false_merges(made) == []
    seen = merged | (found.scored.probability >= PROBABLE) | alike(found)
    assert seen[same].mean() >= 0.9
    assert not (alike(found) & ~same).any()


@pytest.mark.parametrize("seed", [6, 7])
def test_people_are_found_again_and_members_of_their_households_stay_apart(seed: int) -> None:
    """Most candidates with the same title are matches, so a fit that begins with all of them as chance finds none."""
    made = households(130, seed)
    _, merged, same = found_in(made)
    assert false_merges(made) == []
    assert merged[same].mean() > 0.2


kinds = st.lists(
    st.tuples(st.sampled_from(sorted(SLOTS)), st.integers(0, len(TEMPLATES) - 1), st.integers(2, 25)),
    min_size=1,
    max_size=4,
    unique_by=lambda drawn: drawn[1],
)


@pytest.mark.slow
@given(kinds, st.sampled_from(sorted(REWRITINGS)), st.integers(0, 60), st.integers(2, 7))
@settings(max_examples=15, deadline=None)
def test_no_mix_of_families_has_a_sibling_merged(
    drawn: Sequence[tuple[str, int, int]], rewriting: str, others: int, every: int
) -> None:
    topics = [topic for slot, template, size in drawn for topic in family(slot, template, size)]
    assert false_merges(store([*topics, *crowd(others)], rewriting, every=every)) == []


@pytest.mark.parametrize("made", [memories(), meetings(30), deals(30)], ids=["memories", "meetings", "deals"])
@pytest.mark.parametrize("rewriting", [None, "same", "case"])
def test_what_agents_remember_stays_apart(made: list[dict[str, Any]], rewriting: str | None) -> None:
    assert false_merges(store([*made, *crowd(40)], rewriting)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [0, pytest.param(5, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_things_of_one_title_with_unlike_summaries_stay_apart(size: int, fields: bool, others: int) -> None:
    made = namesakes(size, fields)
    assert false_merges(store([*made, *crowd(others)])) == []
    alone = [store([*made[at : at + size], *crowd(others)]) for at in range(0, len(made), size)]
    assert [false_merges(each) for each in alone] == [[]] * len(alone)


def test_summaries_that_vary_among_duplicates_keep_none_apart() -> None:
    """As where records of one paper cite it in words of their own: half of those with equal fields do."""
    papers = [topic | {"fields": {"place": place, "year": 1990 + at}} for at, (topic, place) in enumerate(_papers())]
    again = [
        paper | {"summary": paper["summary"] if at % 2 else "As cited by others in print"}
        for at, paper in enumerate(papers)
    ]
    found, merged, same = found_in(Store([*papers, *again], [*range(len(papers))] * 2))
    unlike = np.array([found.pairs.a[row] % 2 == 0 for row in range(len(found.pairs))])
    assert merged[same & unlike].mean() > 0.9


def _papers() -> list[tuple[dict[str, Any], str]]:
    return [(topic, f"Proceedings of {topic['title'].split()[0]}") for topic in crowd(80)]


@pytest.mark.parametrize("rewriting", [None, "same", "typo"])
@pytest.mark.parametrize("names", ["a", "ab", "abcde"], ids=["one source", "two sources", "five sources"])
def test_sources_of_a_small_store_that_say_nothing_change_no_merge(names: str, rewriting: str | None) -> None:
    made = store([*memories(), *crowd(40)], rewriting)
    sourced = [topic | {"sources": [names[at % len(names)]]} for at, topic in enumerate(made.topics)]
    with_sources, without = (found_in(Store(topics, made.things))[0] for topics in (sourced, made.topics))
    assert not with_sources.origins.distinct.any()
    assert with_sources.groups.tolist() == without.groups.tolist()


def test_copies_of_memories_are_found() -> None:
    """But those of facts that have two other values, of three in all: chance would repeat one as often."""
    made = store([*memories(), *crowd(40)], "same")
    found, merged, same = found_in(made)
    drinks = np.array([made.topics[row]["title"].startswith("Favourite drink") for row in found.pairs.a])
    assert merged[same & ~drinks].mean() > 0.8
    assert found.chance.doubtful[same & drinks].all()


def test_duplicates_with_one_title_are_no_family_of_a_variant_of_it() -> None:
    story = {"summary": "The northern partner signs at the harbour office in May", "fields": {"owner": "Aya"}}
    titles = ["Quartz formulae of the lagoon"] * 6 + ["Quartz formula of the lagoon"] * 2
    copies = [{"title": title, **story} for title in titles]
    _, merged, same = found_in(Store([*copies, *crowd(80)], [0] * len(copies) + list(range(1, 81))))
    assert merged.tolist() == same.tolist()
    assert merged.sum() == len(copies) * (len(copies) - 1) // 2


@pytest.mark.parametrize("summary", [None, "{}"], ids=["without a summary", "whose summary is the title"])
def test_people_of_one_name_whose_dates_of_birth_differ_in_a_part_stay_apart(summary: str | None) -> None:
    """A quarter are noted again with another year, month or day, in which others of their name differ by chance."""
    chance, topics = Random(3), list[dict[str, Any]]()
    first, last = "Anna Bela Carl Dora Emil Frida", "Abel Beck Cohn Dahl Ebert Falk Groth Hahn Imhof Jung"
    names = [f"{one} {other}" for one in first.split() for other in last.split()]
    for number in range(400):
        name = chance.choice(names)
        born = {"year": chance.randrange(1940, 2000), "month": chance.randrange(1, 13), "day": chance.randrange(1, 29)}
        again = born | {chance.choice([*born]): chance.randrange(1, 29)}
        for fields in (born, again)[: 2 if number % 4 == 0 else 1]:
            values = {part: str(value) for part, value in fields.items()}
            topics.append({"title": name, "summary": summary and summary.format(name), "fields": values})
    found = dedupe(topics)
    merged = found.pairs.where(found.grouped)
    assert all(topics[a]["fields"] == topics[b]["fields"] for a, b in zip(merged.a, merged.b, strict=True))
