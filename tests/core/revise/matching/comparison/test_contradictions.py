"""What varies between sources keeps no pair apart, unless it distinguishes things of one title within a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching import deduplication
from memstate_core.revise.matching.comparison import compared_pairs
from memstate_core.revise.matching.comparison.contradictions import MIN_ANCHORS, REASONS
from memstate_core.revise.matching.decision import Decision, decide
from memstate_core.revise.matching.deduplication import Deduplicated
from memstate_core.revise.matching.earlier_merges import MERGED_FIELDS, EarlierMerges
from tests.core.revise.matching.catalogues import THINGS, catalogues
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import Store

SEEDS = range(4)
SHARES = ((0.65, 0.65), (0.85, 0.4), (0.45, 0.45, 0.45))


def found_in(made: Store) -> Deduplicated:
    return dedupe([{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)])


def merged_pairs(made: Store) -> tuple[int, int]:
    """How many pairs are merged, and how many of them are of one thing."""
    groups, things = found_in(made).groups, np.array(made.things)
    grouped = np.triu(groups[:, None] == groups[None, :], 1)
    return int(grouped.sum()), int((grouped & (things[:, None] == things[None, :])).sum())


def of_every_kind(shares: tuple[float, ...]) -> tuple[int, int]:
    found = [merged_pairs(catalogues(kind, seed, shares)) for kind in THINGS for seed in SEEDS]
    return sum(merged for merged, _ in found), sum(right for _, right in found)


@pytest.mark.slow
@pytest.mark.parametrize("shares", SHARES)
def test_things_of_one_title_in_several_catalogues_stay_apart(shares: tuple[float, ...]) -> None:
    merged, right = of_every_kind(shares)
    assert right >= 0.97 * merged
    assert right > 100


def test_namesakes_excuse_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no duplicates, so how often they contradict each other is not how often duplicates do by chance."""
    made = catalogues("medicines", 1)
    share = found_in(made).decision.contradicted

    def without(*given: Any, namesakes: Any, **named: Any) -> Decision:
        return decide(*given, namesakes=np.zeros_like(namesakes), **named)

    monkeypatch.setattr(deduplication, "decide", without)
    assert found_in(made).decision.contradicted < 0.5 * share


# --- two shops, with prices of their own

PAIRS = 10 * MIN_ANCHORS


def shops(packs: int, summaries: bool = False) -> list[dict[str, Any]]:
    """Products of two shops that set prices of their own, some of them in several packs under one title."""
    chance = Random(3)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    topics = []
    for number in range(PAIRS):
        title = " ".join(chance.sample(stock, 3))
        about = " ".join(chance.sample(stock, 6))
        for pack in range(1 + packs * (number % 20 == 0)):
            stated = {"summary": f"{about} in a box of {12 + 6 * pack} pieces"} if summaries else {"summary": about}
            fields = {} if summaries else {"pack": 12 + 6 * pack}
            for shop in ("north", "south"):
                price = {"price": chance.randint(10, 500)}
                topics.append({"title": title, "sources": [shop], "fields": fields | price} | stated)
    return [{"id": f"t{number:05}", "thing": number // 2, **topic} for number, topic in enumerate(topics)]


def across(found: Deduplicated, topics: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    """Reasons of pairs with one title over both shops: those of one thing, and those of two."""
    ordered = sorted(topics, key=lambda topic: str(topic["id"]))
    reasons: tuple[list[int], list[int]] = [], []
    for a, b, reason in zip(found.pairs.a, found.pairs.b, found.contradicts, strict=True):
        one, other = ordered[a], ordered[b]
        if one["title"] == other["title"] and one["sources"] != other["sources"]:
            reasons[one["thing"] != other["thing"]].append(int(reason))
    return reasons


def test_prices_that_vary_between_shops_keep_no_product_apart() -> None:
    topics = shops(packs=0)
    same, _ = across(dedupe(topics), topics)
    assert (len(same), set(same)) == (PAIRS, {0})


@pytest.mark.parametrize("summaries", [False, True])
def test_packs_stay_apart_and_the_same_pack_at_another_price_does_not(summaries: bool) -> None:
    """Within a shop packs differ in size and in price, so a pair that differs in its price only is no pair of packs."""
    topics = shops(packs=2, summaries=summaries)
    same, different = across(dedupe(topics), topics)
    assert set(same) == {0}
    assert different
    assert {REASONS[reason] for reason in different} == {"field"}


def sized() -> list[dict[str, Any]]:
    """Products of two shops, each with words of its own for sizes; one title in five is listed in two sizes."""
    chance, topics = Random(6), []
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    for number in range(PAIRS):
        title = " ".join(chance.sample(stock, 3))
        for size in range(1 + (number % 5 == 0)):
            for shop, words in (("north", ("small", "large")), ("south", ("klein", "gross"))):
                thing = 2 * number + size
                topics.append({"title": title, "sources": [shop], "fields": {"size": words[size]}, "thing": thing})
    return [{"id": f"t{number:05}", **topic} for number, topic in enumerate(topics)]


def test_things_of_one_title_within_a_shop_show_what_distinguishes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shop has its own words for sizes, so they would not contradict if these things did not count."""
    topics = sized()
    _, different = across(dedupe(topics), topics)
    assert {REASONS[reason] for reason in different} == {"field"}
    monkeypatch.setattr(compared_pairs, "namesakes_across", lambda found, *_: np.zeros(len(found.shared), bool))
    same, different = across(dedupe(topics), topics)
    assert set(same) == set(different) == {0}


def test_merges_of_earlier_nights_count_among_the_pairs_that_vary() -> None:
    """One product is twice in a shop: it explains few pairs of a first night, and would explain many of a later one."""
    first = shops(packs=0)
    again = first[0] | {"id": "again", "thing": PAIRS, "fields": {"pack": 12, "price": 7}}
    same, _ = across(dedupe([*first, again]), [*first, again])
    assert set(same) == {0}
    merged = [{**one, "sources": ["north", "south"]} for one in first[: 2 * PAIRS - 20 : 2]]
    second = [*merged, *first[2 * PAIRS - 20 :], again]
    fields = pl.DataFrame(
        [(merge, "price", True, True, True, True) for merge in range(len(merged))], MERGED_FIELDS, orient="row"
    )
    absorbed = np.array([len(topic["sources"]) - 1 for topic in second])
    nothing = EarlierMerges.none(len(second))
    for earlier, kept_apart in ((nothing, True), (replace(nothing, fields=fields, absorbed=absorbed), False)):
        found = dedupe(second, earlier=replace(earlier, by_runs=absorbed, links=len(merged)))
        same, _ = across(found, second)
        assert (len(same), any(same)) == (10, kept_apart)


def test_where_summaries_alone_differ_they_are_the_reason() -> None:
    topics = [topic | {"fields": {}} for topic in shops(packs=2, summaries=True)]
    same, different = across(dedupe(topics), topics)
    assert set(same) == {0}
    assert {REASONS[reason] for reason in different} == {"summary"}


# --- two shops, with numbers of models

EVERY = 7
"""One pair of a title in so many has two numbers: more than a tenth, less than a quarter."""


def models(variants: bool = False, barcode: bool = False) -> list[dict[str, Any]]:
    """Products of two shops, some of which have two numbers and makers: titles of two variants, or errors."""
    chance = Random(4)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    topics = []
    for number in range(PAIRS):
        title, other = " ".join(chance.sample(stock, 3)), int(number % EVERY == 0)
        for shop, variant in (("north", 0), ("south", other)):
            fields = {"maker": f"Zubaro {'Rafuki' if variant else 'Mollen'}", "price": chance.randint(10, 500)}
            fields |= {"model": f"{title[:3].upper()}{number:04}{variant}"} if variants or barcode else {}
            fields |= {"barcode": f"4{number:011}"} if barcode else {}
            thing = -number - 1 if variants and variant else number
            topics.append({"title": title, "sources": [shop], "fields": fields, "thing": thing})
    return [{"id": f"t{number:05}", **topic} for number, topic in enumerate(topics)]


def test_variants_of_one_title_stay_apart_by_their_numbers() -> None:
    topics = models(variants=True)
    same, different = across(dedupe(topics), topics)
    assert set(same) == {0}
    assert (len(different), set(different)) == (1 + PAIRS // EVERY, {REASONS.index("field")})


@pytest.mark.parametrize("barcode", [False, True], ids=["another maker", "another number beside one barcode"])
def test_errors_keep_nothing_apart(barcode: bool) -> None:
    topics = models(barcode=barcode)
    same, _ = across(dedupe(topics), topics)
    assert (len(same), set(same)) == (PAIRS, {0})


# --- one source, whose things share a text


def seated(seats: Callable[[int], tuple[str, str]]) -> dict[int, int]:
    """Pairs of one text each, with a seat for both topics; the reason of each pair."""
    chance, topics = Random(5), []
    for number in range(PAIRS):
        said = {
            name: " ".join("".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(words))
            for name, words in (("title", 3), ("summary", 6))
        }
        topics += [
            {"id": f"t{number:05}-{place}", **said, "fields": {"seat": seat}}
            for place, seat in enumerate(seats(number))
        ]
    found = dedupe(topics)
    own = found.pairs.a // 2 == found.pairs.b // 2
    return dict(zip((found.pairs.a[own] // 2).tolist(), found.contradicts[own].tolist(), strict=True))


def test_values_that_cannot_be_compared_do_not_make_a_field_vary() -> None:
    """Half of the pairs have a code and a description; nearly all of the others contradict each other."""
    described = "by the window on the left side"
    reasons = seated(lambda number: ("B7", "B7" if number % 20 == 0 else "C9" if number % 2 else described))
    assert {reasons[number] for number in range(PAIRS)} == {0, REASONS.index("field")}
    assert {reasons[number] for number in range(PAIRS) if number % 20} == {REASONS.index("field")}


@pytest.mark.parametrize(("every", "reason"), [(2, "field"), (4, "wording")])
def test_a_field_varies_only_if_most_pairs_of_one_text_agree_in_it(every: int, reason: str) -> None:
    reasons = seated(lambda number: ("B7", "B7" if number % every else "C9"))
    assert {reasons[number] for number in range(0, PAIRS, every)} == {REASONS.index(reason)}


# --- two registers, with towns and streets of their own


def offices() -> list[dict[str, Any]]:
    """Firms of two registers: every eighth moved to another town, every fifth is another one of its name elsewhere."""
    chance = Random(6)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    topics = []
    for number in range(PAIRS):
        title, street, town = " ".join(chance.sample(stock, 2)), chance.choice(stock), chance.choice(stock)
        fields = {"street": street, "town": town}
        other = number % 5 == 0
        there = {"street": chance.choice(stock), "town": chance.choice(stock)} if other else fields
        there |= {"town": chance.choice(stock)} if number % 8 == 0 else {}
        for register, said, thing in (("north", fields, number), ("south", there, -number - 1 if other else number)):
            topics.append({"title": title, "sources": [register], "fields": said, "thing": thing})
    return [{"id": f"t{number:05}", **topic} for number, topic in enumerate(topics)]


def test_where_all_fields_contradict_each_other_the_title_alone_makes_no_duplicate() -> None:
    topics = offices()
    same, different = across(dedupe(topics), topics)
    assert {REASONS[reason] for reason in same} == {""}
    assert {REASONS[reason] for reason in different} == {"field"}
