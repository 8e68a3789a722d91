"""A later night knows what earlier merges showed: a store that grows is matched like one that came at once."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec import json as msgjson

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.candidates.blocking import nearest_neighbours
from memstate_core.revise.matching.comparison.comparisons import compare
from memstate_core.revise.matching.comparison.sources import learn_origins
from memstate_core.revise.matching.deduplication import deduplicate
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.revise.merge_memory import earlier_merges, merges_in_force
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import MATCH_MODEL
from tests.core.revise.matching.corpora import corpus, plain_repeats
from tests.core.revise.nights import Night, Topic, night, record, transitions
from tests.core.revise.test_verdicts import ledger, merged, unmerged

THINGS, LATER = 150, 30


def catalogues(numbers: range) -> dict[str, Topic]:
    """Things listed by two shops at other prices: under one title, with a word more, or (a fifth) with another word."""
    found: dict[str, Topic] = {}
    for number in numbers:
        chance = random.Random(number)
        words = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(5)]
        titles = ([*words[:2], words[4]], words[:3], words[:3], words[:4], words[:4])
        own = words[:3], titles[number % 5]
        for shop, listed in zip(("north", "south"), own, strict=True):
            price = {"name": "price", "value": 10 + chance.randrange(900)}
            found[f"{shop}{number:03}"] = {"title": " ".join(listed), "source_uri": shop, "fields": [price]}
    return found


def models(store: Store) -> list[dict[str, Any]]:
    return [msgjson.decode(payload) for payload in transitions(store, MATCH_MODEL)["payload_json"]]


def merge_count(result: Night) -> int:
    return int(result.found.counts["merge_band"])


def listed_twice() -> dict[str, Topic]:
    """A thing that one shop has at another price, too."""
    one = catalogues(range(1, 2))["north001"]
    return {"north001b": one | {"fields": [{"name": "price", "value": 5}]}}


def test_merges_that_answers_confirm_count_as_those_of_people() -> None:
    def made(dropped: str, **more: Any) -> tuple[Any, ...]:
        kind, topic, payload = merged(dropped, "a")
        return kind, topic, payload | more

    rows = ledger(
        made("b"), made("c", confirmed_by=0), made("d", confirmed_by=60), made("e", actor="person", probability=1.0)
    )
    assert merges_in_force(rows).select("actor", "probability").rows() == [
        (None, 0.99), (None, 0.99), ("person", 0.99), ("person", 1.0),
    ]  # fmt: skip
    of = corpus([{"id": "a", "title": "Atlas"}, {"id": "z", "title": "Zebra"}])
    found = earlier_merges(of, merges_in_force(rows))
    assert (found.absorbed.tolist(), found.by_runs.tolist(), found.links) == ([4, 0], [2, 0], 2)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [{}, listed_twice()], ids=["prices vary", "prices vary within a shop as well"])
def test_what_comes_later_is_merged_like_what_came_at_once(tmp_path: Path, beside: dict[str, Topic]) -> None:
    once = open_store(tmp_path / "once", {})
    record(once, catalogues(range(THINGS + LATER)) | beside, 1)
    expected = merge_count(night(once, 2))
    grown = open_store(tmp_path / "grown", {})
    record(grown, catalogues(range(THINGS)) | beside, 1)
    first = merge_count(night(grown, 2))
    record(grown, catalogues(range(THINGS, THINGS + LATER)), 3)
    second = night(grown, 4)
    assert first >= THINGS / 2
    assert merge_count(second) >= LATER / 2
    assert first + merge_count(second) == pytest.approx(expected, abs=2)
    assert [model["sources_distinct"] for model in models(grown)] == [2, 2]
    rates = [model["match_rate"] for model in models(grown)]
    assert rates[0] / 2 < rates[1] < rates[0] * 2


# What is read from decisions


def test_undone_merges_say_nothing() -> None:
    rows = merges_in_force(ledger(merged("b", "a"), merged("d", "c"), unmerged("d", "c")))
    assert rows.select("into", "probability").rows() == [("a", 0.99)]


def test_merges_of_people_are_matches_but_no_links_without_a_contradiction() -> None:
    by_person = merged("c", "a")
    by_person[2].update(actor="person", probability=1.0)
    of = corpus([{"id": "a", "title": "Acme"}, {"id": "z", "title": "Boat"}])
    found = earlier_merges(of, merges_in_force(ledger(merged("b", "a"), by_person)))
    assert (found.absorbed.tolist(), found.links) == ([2, 0], 1)
    assert found.levels.filter(pl.col("name") == "title")["probability"].sort().to_list() == [0.99, 1.0]


def test_a_chain_of_merges_counts_for_the_topic_that_is_left() -> None:
    decided = ledger(merged("c", "b"), merged("b", "a"))
    of = corpus([{"id": "a", "title": "Acme"}, {"id": "z", "title": "Boat"}])
    assert earlier_merges(of, merges_in_force(decided)).absorbed.tolist() == [2, 0]


def test_merges_into_other_scopes_say_nothing() -> None:
    decided = ledger(merged("b", "a"))
    of = corpus([{"id": "y", "title": "Acme"}, {"id": "z", "title": "Boat"}])
    found = earlier_merges(of, merges_in_force(decided))
    assert (found.levels.height, found.fields.height, found.absorbed.tolist()) == (0, 0, [0, 0])


# What they change


def test_topics_of_two_sources_show_that_their_sources_are_distinct() -> None:
    """All but a few of the things were merged; the rest are alike only within their source."""
    both = [{"id": f"m{n:03}", "title": f"thing {n}", "sources": ["north", "south"]} for n in range(200)]
    left = [{"id": f"n{n:03}", "title": f"left over {n}", "sources": ["north"]} for n in range(60)]
    of = corpus([*both, *left])
    pairs = nearest_neighbours(of)
    rankings = compare(of, pairs).rankings
    absorbed, plain = np.array([1] * 200 + [0] * 60), np.zeros(len(pairs), bool)
    assert learn_origins(of, pairs, rankings, plain, absorbed).distinct.tolist() == [True, True]
    assert learn_origins(of, pairs, rankings, plain, np.zeros(260, np.int64)).distinct.tolist() == [False, False]
    within = learn_origins(of, pairs, rankings, plain, absorbed * 3)
    assert within.distinct.tolist() == [False, True]


def test_the_few_repeats_that_are_left_within_a_source_count_beside_those_that_were_merged() -> None:
    both = [{"id": f"m{n:03}", "title": f"thing {n}", "sources": ["north", "south"]} for n in range(200)]
    left = [{"id": f"n{n:03}", "title": f"panel {n % 10}", "sources": ["north"]} for n in range(20)]
    of = corpus([*both, *left])
    pairs = nearest_neighbours(of)
    rankings, absorbed = compare(of, pairs).rankings, np.array([1] * 200 + [0] * 20)
    assert plain_repeats(of, pairs).sum() == 10
    assert learn_origins(of, pairs, rankings, plain_repeats(of, pairs), absorbed).distinct.tolist() == [True, True]
    assert not learn_origins(of, pairs, rankings, plain_repeats(of, pairs), absorbed * 0).distinct.any()


def test_merges_by_people_do_not_show_that_sources_are_free_of_repeats() -> None:
    both = [{"id": f"m{n:03}", "title": f"thing {n}", "sources": ["north", "south"]} for n in range(200)]
    left = [{"id": f"n{n:03}", "title": f"panel {n % 10}", "sources": ["north"]} for n in range(20)]
    of, limits = corpus([*both, *left]), constraints(ledger(), empty(EVIDENCE_TOPIC))
    nothing, absorbed = EarlierMerges.none(len(of)), np.array([1] * 200 + [0] * 20)
    by_people, by_runs = replace(nothing, absorbed=absorbed), replace(nothing, absorbed=absorbed, by_runs=absorbed)
    assert deduplicate(of, limits, sure=0.9, earlier=by_runs).origins.distinct.all()
    assert not deduplicate(of, limits, sure=0.9, earlier=by_people).origins.distinct.any()


def test_merges_by_people_are_kept_from_those_of_runs() -> None:
    kind, topic, payload = merged("c", "a")
    made = ledger(merged("b", "a"), (kind, topic, payload | {"actor": "person"}))
    found = earlier_merges(corpus([{"id": "a"}]), merges_in_force(made))
    assert (found.absorbed.tolist(), found.by_runs.tolist(), found.links) == ([2], [1], 1)


def test_merges_count_for_the_match_rate_like_the_candidates_that_they_were() -> None:
    of = corpus([{"title": f"thing {n} {n * 7} {n * 13}"} for n in range(60)])
    pairs = nearest_neighbours(of)
    earlier = EarlierMerges.none(len(of))
    displaced = EarlierMerges(
        earlier.levels, earlier.fields, earlier.equal, np.array([1] * 20 + [0] * 40), np.zeros(60, int), 0
    ).displaced(pairs, np.ones(len(pairs), bool))
    assert displaced == pytest.approx(20 * len(pairs) / len(of))
