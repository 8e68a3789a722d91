"""Duplicate-free sources are recognised, and only those."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates, nearest_neighbours
from memstate_core.revise.matching.comparison.comparisons import compare
from memstate_core.revise.matching.comparison.sources import DEPTHS, MAX_SHARE, Origins, learn_origins
from memstate_core.revise.matching.corpus import Corpus
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair, plain_repeats
from tests.core.revise.matching.families import Store
from tests.core.revise.matching.namesakes import counted_pairs

TWICE = 2 * DEPTHS[1]


def records(count: int = TWICE) -> list[dict[str, Any]]:
    """Things listed by two catalogues in different words; the things have little in common."""
    chance = random.Random(7)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    things = [" ".join(chance.sample(stock, 3)) for _ in range(count // 2)]
    return [
        {"id": f"{source}{number:04}", "title": f"{thing} {word}", "sources": [source]}
        for number, thing in enumerate(things)
        for source, word in (("crm", "ltd"), ("erp", "inc"))
    ]


def nothing_merged(of: Corpus) -> Ints:
    return np.zeros(len(of), np.int64)


def origins(topics: list[dict[str, Any]]) -> Origins:
    of = corpus(topics)
    pairs = nearest_neighbours(of)
    return learn_origins(of, pairs, compare(of, pairs).rankings, plain_repeats(of, pairs), nothing_merged(of))


def test_two_duplicate_free_catalogues_are_distinct() -> None:
    found = origins(records())
    assert found.distinct.tolist() == [True, True]
    assert ((found.share >= 0) & (found.share < MAX_SHARE)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_same_records_under_random_sources_are_not_distinct(seed: int) -> None:
    chance = random.Random(seed)
    found = origins([record | {"sources": [chance.choice(["crm", "erp"])]} for record in records()])
    assert not found.distinct.any()
    assert (found.share > 0.7).all()


def test_a_catalogue_with_as_many_duplicates_within_as_across_is_not_distinct() -> None:
    again = [record | {"id": f"{record['id']}-again", "title": record["title"].upper()} for record in records(100)]
    assert not origins(records(100) + again).distinct.any()


def scraped(count: int) -> tuple[Corpus, Candidates, Any]:
    """A catalogue, and a source that names each of its things twice, with a ranking that puts the latter pairs last."""
    said = [("list", ""), ("web", "-1"), ("web", "-2")]
    of = corpus([
        {"id": f"{source}{number:04}{copy}", "title": record["title"], "sources": [source]}
        for number, record in enumerate(records(count))
        for source, copy in said
    ])  # fmt: skip
    pairs = nearest_neighbours(of)
    first = learn_origins(of, pairs, np.zeros((1, len(pairs))), np.zeros(len(pairs), bool), nothing_merged(of)).first
    return of, pairs, np.array([first[pairs.a] != first[pairs.b]], np.float64)


def test_a_source_that_plainly_repeats_itself_is_not_distinct_by_a_ranking_that_puts_its_repeats_last() -> None:
    of, pairs, ranking = scraped(200)
    blind = np.zeros(len(pairs), bool)
    assert learn_origins(of, pairs, ranking, blind, nothing_merged(of)).distinct.tolist() == [True, True]
    assert learn_origins(of, pairs, ranking, plain_repeats(of, pairs), nothing_merged(of)).distinct.tolist() == [
        True,
        False,
    ]


def test_pairs_that_tie_count_by_their_mean_so_ids_decide_nothing() -> None:
    """Branches of chains: many pairs of a source have one title and agree equally well."""
    said = [("guide", 3), ("list", 1)]
    branches = [
        {"title": record["title"][:6], "sources": [source]}
        for record in records(60)
        for source, copies in said
        for _ in range(copies)
    ]
    shares = []
    for seed in range(3):
        order = random.Random(seed).sample(range(len(branches)), len(branches))
        shares.append(origins([{"id": f"t{at:03}", **branches[row]} for at, row in enumerate(order)]).share.tolist())
    assert shares[1:] == [pytest.approx(shares[0]), pytest.approx(shares[0])]
    assert np.isfinite(shares[0]).all()


def test_repeats_whose_fields_contradict_say_nothing_about_a_source() -> None:
    of = corpus([
        {"id": str(at), "title": "Acme", "sources": ["list"], "fields": {"year": year}}
        for at, year in enumerate((2001, 2001, 2007))
    ])  # fmt: skip
    pairs = every_pair(of)
    found = {(int(a), int(b)) for a, b, same in zip(pairs.a, pairs.b, plain_repeats(of, pairs), strict=True) if same}
    assert found == {(0, 1)}


def diary(count: int = TWICE) -> list[dict[str, Any]]:
    """A source with subjects of its own that contains each of them twice."""
    return [
        record | {"id": f"{record['id']}-diary", "title": record["title"][::-1], "sources": ["diary"]}
        for record in records(count)
    ]


def test_a_source_with_duplicates_is_recognised_beside_duplicate_free_catalogues() -> None:
    assert origins(records() + diary()).distinct.tolist() == [True, False, True]


def test_sources_too_small_for_an_estimate_are_pooled() -> None:
    """Monthly exports of each catalogue, thirty topics each."""
    monthly = [
        record | {"sources": [f"{record['sources'][0]}-{number // 60}"]} for number, record in enumerate(records())
    ]
    found = origins(monthly)
    assert len(set(found.share)) == 1
    assert len(found.share) > 4


@pytest.mark.parametrize(
    "sources", [lambda _: [], lambda _: ["crm"], lambda number: [f"file-{number}"]], ids=["none", "one", "own each"]
)
def test_no_source_is_distinct_where_sources_carry_no_information(sources: Any) -> None:
    found = origins([record | {"sources": sources(number)} for number, record in enumerate(records())])
    assert not found.distinct.any()
    assert (np.isnan(found.share) | (found.share > 1)).all()


def test_too_few_records_give_no_estimate() -> None:
    found = origins(records(2 * DEPTHS[0] - 2))
    assert not found.distinct.any()
    assert np.isnan(found.share).all()


@pytest.mark.parametrize("copies", [1, 4, 9])
@pytest.mark.parametrize("names", ["a", "ab"], ids=["one source", "two sources"])
def test_copies_in_sources_too_small_for_an_estimate_are_merged(names: str, copies: int) -> None:
    """What few copies there are is below chance by two standard deviations, which shows nothing about a source."""
    topics = [{"title": topic["title"], "summary": topic["title"][::-1]} for topic in records(60)[::2]]
    repeated = [*topics, *topics[:copies]]
    sourced = [topic | {"sources": [names[at % len(names)]]} for at, topic in enumerate(repeated)]
    found = dedupe([{"id": f"t{at:03}", **topic} for at, topic in enumerate(sourced)])
    assert np.isnan(found.origins.share).all()
    assert found.grouped.sum() == copies


def test_scopes_are_not_sources() -> None:
    """Two users with a source each: no pair could lie over two sources, so there is no evidence."""
    own = [record | {"scope": f"user:{record['sources'][0]}"} for record in records()]
    assert not origins(own).distinct.any()


# Relations of pairs

FOUR = [{"sources": ["crm"]}, {"sources": ["crm"]}, {"sources": ["erp"]}, {}]


def test_pairs_of_one_source_are_distinct_and_pairs_over_two_compete() -> None:
    of = corpus([{"title": "Acme"} | topic for topic in FOUR])
    member = learn_origins(of, every_pair(of), np.zeros((1, 6)), np.zeros(6, bool), nothing_merged(of)).member
    relations = Origins(member, np.full(member.shape[1], 0.1)).relations(every_pair(of))
    assert relations.same.tolist() == [True, False, False, False, False, False]
    assert relations.competing.tolist() == [False, True, False, True, False, False]
    assert (relations.within.tolist(), relations.across_by_within) == ([True, *[False] * 5], 2)
    assert (relations.across_by_same, relations.opportunities) == (2, 3)
    one = Origins(member, np.array([0.1, 0.9])).relations(every_pair(of))
    assert one.same.tolist() == [True, False, False, False, False, False]
    assert one.b_competes.tolist() == [False, True, False, True, False, False]
    assert not one.a_competes.any()
    assert (one.within.tolist(), one.across_by_within) == ([True, *[False] * 5], 2)
    open_ = Origins(member, np.full(member.shape[1], 0.9)).relations(every_pair(of))
    assert not open_.same.any()
    assert not open_.competing.any()
    assert open_.across_by_within == 0
    assert Origins(member[2:], np.full(member.shape[1], 0.1)).across_by_within == 0, "no source has two topics"


def test_pairs_over_sources_are_counted_against_those_within_one() -> None:
    sizes, distinct = (4, 3, 5), np.array([True, False, False])
    rows = [{"title": "Acme", "sources": [f"s{source}"]} for source, size in enumerate(sizes) for _ in range(size)]
    of = corpus(rows)
    pairs = every_pair(of)
    member = learn_origins(of, pairs, np.zeros((1, len(pairs))), np.zeros(len(pairs), bool), nothing_merged(of)).member
    found = Origins(member, np.where(distinct, 0.1, 0.9)).relations(pairs)
    assert found.across_by_within == pytest.approx(found.competing.sum() / found.within.sum())
    assert found.within.sum() == 6 + 3 + 10
    assert found.across_by_same == pytest.approx(found.competing.sum() / found.same.sum())
    assert found.same.sum() == 6
    assert found.opportunities == 4 + 4 + 3 + 5, "the topics of the distinct source twice, each other one once"


def test_a_topic_of_two_sources_is_of_both() -> None:
    of = corpus([{"title": "Acme", "sources": sources} for sources in (["crm", "erp"], ["erp"], ["web"])])
    assert of.sources.select(pl.len()).item() == 4
    member = learn_origins(of, every_pair(of), np.zeros((1, 3)), np.zeros(3, bool), nothing_merged(of)).member
    relations = Origins(member, np.full(member.shape[1], 0.1)).relations(every_pair(of))
    assert relations.same.tolist() == [True, False, False]
    assert relations.competing.tolist() == [False, True, True]


# --- things of one title within a source


def editions(books: int = 300, copies: float = 0.0, error: float = 0.0, seed: int = 1) -> Store:
    """Books of two shops, half of them in two editions; prices are the shops' own.

    Args:
        books: how many.
        copies: the share that a shop lists twice.
        error: the share of these whose pages differ.
        seed: of all draws.
    """
    chance = random.Random(seed)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    topics: list[dict[str, Any]] = []
    things: list[int] = []
    for number in range(books):
        title, author = " ".join(chance.sample(stock, 2)), " ".join(chance.sample(stock, 2))
        for edition in range(1 + number % 2):
            said = {"isbn": str(chance.randrange(10**12, 10**13)), "pages": chance.randrange(90, 900)}
            for shop in ("north", "south"):
                for copy in range(1 + (chance.random() < copies)):
                    pages = {"pages": chance.randrange(90, 900)} if copy and chance.random() < error else {}
                    fields = said | pages | {"price": chance.randint(5, 60)}
                    topics.append({"title": title, "summary": author, "fields": fields, "sources": [shop]})
                    things.append(2 * number + edition)
    return Store([{"id": f"t{place:05}"} | topic for place, topic in enumerate(topics)], things)


def test_shops_that_list_several_editions_are_distinct() -> None:
    made = editions()
    found = dedupe(made.topics)
    assert found.origins.distinct.tolist() == [True, True]
    merged, right = counted_pairs(made, found.groups)
    assert merged == right
    assert right >= 0.95 * 450


@pytest.mark.parametrize("error", [0.0, 0.5])
def test_shops_that_list_editions_twice_are_not_distinct(error: float) -> None:
    made = editions(copies=0.3, error=error)
    found = dedupe(made.topics)
    merged, right = counted_pairs(made, found.groups)
    assert not found.origins.distinct.any()
    assert merged == right


def test_editions_under_random_shops_are_not_distinct() -> None:
    chance, made = random.Random(5), editions()
    topics = [topic | {"sources": [chance.choice(("north", "south"))]} for topic in made.topics]
    assert not dedupe(topics).origins.distinct.any()
