"""Different things over two sources: what contradicts within one may not be stated in the other."""

from __future__ import annotations

from random import Random

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.belief.chance import chance_of
from memstate_core.revise.matching.belief.over_sources import OverSources, shown_within, unseen
from memstate_core.revise.matching.belief.part_shares import part_shares
from memstate_core.revise.matching.comparison.parts import agreements, parts_of, sampled
from memstate_core.revise.matching.comparison.sources import Origins
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.families import Store, Topic
from tests.core.revise.matching.namesakes import counted_pairs

VERSIONS, SHARED, DATA = 4, 0.25, 0.4
"""Versions of a data set, the share of things that are in both registries, and that of data sets among them."""


def registries(count: int, *, alike: bool, seed: int = 7) -> Store:
    """Programs and data sets in two registries; a data set has one text, and a number and a day for each version.

    Args:
        count: how many programs and data sets.
        alike: whether both registries state number and day in the same way.
        seed: of all draws.
    """
    chance, topics, things = Random(seed), list[Topic](), list[int]()
    names = (("version", "published", "v {}"), ("version", "published", "v {}"))
    names = names if alike else (("release", "issued", "v {}"), ("version", "published", "Release {}"))
    for number in range(count):
        said = {"title": _words(chance, 3), "summary": _words(chance, 8)}
        fields = {"maker": _words(chance, 2), "licence": chance.choice(("MIT", "GPL", "BSD", "CC0"))}
        versions = range(1, VERSIONS + 1) if chance.random() < DATA else (0,)
        place = chance.random()
        for source in (0, 1) if place < SHARED else (0,) if place < 0.6 else (1,):
            of, on, written = names[source]
            for version in chance.sample(versions, min(len(versions), chance.choice((1, 1, 2)))):
                day = f"20{10 + version + number % 9}-0{1 + version}-1{number % 9}"
                own = {of: written.format(version), on: day} if version else {}
                topics.append({**said, "fields": fields | own, "sources": [f"s{source}"]})
                things.append((VERSIONS + 1) * number + version)
    return Store(topics, things)


def games(count: int, *, named: bool, seed: int) -> Store:
    """Editions of games in two lists without duplicates; each has three in five of them, and ranks them.

    Args:
        count: how many games.
        named: whether both lists call the field of the platform, and the platforms, by the same names.
        seed: of all draws.
    """
    chance, topics, things = Random(seed), list[Topic](), list[int]()
    notations = tuple((name, [_words(chance, 1) for _ in range(30)]) for name in ("platform", "console"))
    makers = [f"Studio {_words(chance, 1)}" for _ in range(40)]
    for number in range(count):
        said = {"title": _words(chance, 3)}
        fields = {"maker": chance.choice(makers), "year": str(chance.randrange(1990, 2020))}
        for edition in chance.sample(range(30), chance.choice((1, 1, 1, 2, 3))):
            for source, (name, platforms) in enumerate(notations[:1] * 2 if named else notations):
                if chance.random() < 0.6:
                    own = {name: platforms[edition], f"rank in {source}": str(chance.randrange(1000))}
                    topics.append({**said, "fields": fields | own, "sources": [f"s{source}"]})
                    things.append(30 * number + edition)
    return Store(topics, things)


def _words(chance: Random, count: int) -> str:
    letters = ("bdfgklmnprst", "aeiou") * 3
    return " ".join("".join(map(chance.choice, letters)) for _ in range(count))


def compared(*pairs: tuple[Topic, Topic], clean: bool = False) -> dict[str, float]:
    """How often each field counts as compared over two sources; a pair of topics with the same title is of both."""
    topics = [
        {"title": f"Title {place}", "fields": fields, "sources": [f"s{source}"]}
        for place, pair in enumerate(pairs)
        for source, fields in enumerate(pair)
    ]
    of = corpus([*topics, *({"title": "Lamp", "fields": {"size": str(size)}, "sources": ["s0"]} for size in (1, 2))])
    member = csr_matrix((np.ones(len(of)), (np.arange(len(of)), [0, 1] * len(pairs) + [0, 0])), shape=(len(of), 2))
    over = OverSources(Origins(member, np.full(2, 0.0 if clean else 1.0)), clean=clean)
    parts, sample = parts_of(of), sampled(of.title_code)
    seen = agreements(of, parts, sample.a, sample.b)
    shares = shown_within(sample, seen, part_shares(parts), parts, over)[2]
    return dict(shares.select(pl.col("name").str.strip_prefix("field:"), "compared").iter_rows())


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_versions_of_one_text_are_not_merged_over_registries_that_share_no_field_of_them(seed: int) -> None:
    made = registries(150, alike=False, seed=seed)
    found = dedupe(made.topics)
    assert not found.origins.distinct.any()
    assert counted_pairs(made, found.groups) == (0, 0)


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_they_are_merged_where_both_registries_state_the_version_alike(seed: int) -> None:
    made = registries(150, alike=True, seed=seed)
    merged, right = counted_pairs(made, dedupe(made.topics).groups)
    assert merged == right > 20


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_editions_are_not_merged_over_lists_of_which_nothing_compares_their_platforms(seed: int) -> None:
    made = games(400, named=False, seed=seed)
    found = dedupe(made.topics)
    merged, right = counted_pairs(made, found.groups)
    assert found.origins.distinct.all()
    assert right >= 0.95 * merged


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_they_are_merged_where_both_lists_name_the_platforms_alike(seed: int) -> None:
    made = games(400, named=True, seed=seed)
    merged, right = counted_pairs(made, dedupe(made.topics).groups)
    assert right > 200
    assert right >= 0.99 * merged


def test_two_things_of_one_title_in_a_few_of_many_conversations_hold_back_nothing() -> None:
    chance, topics, things = Random(5), list[Topic](), list[int]()
    for session in range(200):
        for fact in range(2):
            said = {"title": _words(chance, 3), "summary": _words(chance, 8), "fields": {"place": _words(chance, 1)}}
            again = 2 if session < 150 and not fact else 1
            topics += [said | {"sources": [f"s{session + 200 * time}"]} for time in range(again)]
            things += [2 * session + fact] * again
        if session >= 197:
            said = {"title": _words(chance, 3), "summary": _words(chance, 8), "sources": [f"s{session}"]}
            topics += [said | {"fields": {"place": "Rome", f"dose {session}": f"{size} mg"}} for size in (5, 10)]
            things += [1000 + 2 * session, 1001 + 2 * session]
    made = Store(topics, things)
    assert counted_pairs(made, dedupe(topics).groups) == (150, 150)


def test_a_field_is_compared_as_often_as_the_other_source_states_it() -> None:
    both, one = ({"size": "3", "hue": "red"}, {"size": "3", "hue": "red"}), ({"size": "4", "hue": "red"}, {"size": "4"})
    assert compared(both, one) == {"size": 1.0, "hue": pytest.approx(2 / 3)}
    assert compared(({"size": "3"}, {"Mass": "3"})) == {"size": 0.0, "Mass": 0.0}


def test_over_duplicate_free_sources_it_counts_as_often_as_within_one() -> None:
    pairs = [({"size": "3"}, {"size": "3"}), ({"size": "4"}, {"mass": "4"})]
    assert compared(*pairs, clean=True)["size"] == pytest.approx(0.5)


def test_things_are_as_surprising_as_what_they_agree_in_whether_another_source_states_it() -> None:
    rows = [
        ("Lamp", {"maker": "abc", "size": "1"}, "s0"),
        ("Lamp", {"maker": "abc", "size": "2"}, "s0"),
        ("Lamp", {}, "s1"),
    ]
    rows += [(f"Title {place}", {"maker": _words(Random(place), 1)}, "s0") for place in range(20)]
    of = corpus([{"title": title, "fields": fields, "sources": [source]} for title, fields, source in rows])
    member = csr_matrix((np.ones(len(of)), (np.arange(len(of)), [0, 0, 1] + [0] * 20)), shape=(len(of), 2))
    over = OverSources(Origins(member, np.full(2, 1.0)), clean=False)
    chance = chance_of(of, parts_of(of), of.title_code, over=over)
    assert chance is not None
    log = chance.shares.filter(name="field:maker")["log"].item()
    assert log < -4
    assert chance.agreement.tolist() == [pytest.approx(log)]
    assert chance.expected.tolist() == [over.each]


def test_what_contradicts_is_unseen_where_no_part_of_it_is_compared() -> None:
    rows = [(0, "size", False, True), (0, "hue", False, True), (1, "size", True, False), (2, "hue", False, True)]
    seen = pl.DataFrame(rows, orient="row", schema=["pair", "name", "agree", "contradict"])
    shares = pl.DataFrame({"name": ["size", "hue"], "compared": [0.25, 1.0]})
    assert unseen(seen, shares, 4).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert unseen(seen, shares.with_columns(compared=pl.col("compared") / 2), 4) == pytest.approx([0.4375, 0, 0.5, 0])
