"""Duplicates of a corpus from end to end: what is merged, and what never is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.candidates import blocking
from memstate_core.revise.matching.clustering import in_group
from memstate_core.revise.matching.deduplication import Deduplicated
from memstate_core.revise.scope_matches import calibration
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.test_verdicts import judged, ledger

Topic = dict[str, Any]

QUARTZ = {"title": "Quartz lagoon harvest", "summary": "Signing with the northern partner at the harbour office in May"}


def crowd(count: int = 300) -> list[Topic]:
    """Unrelated topics."""
    chance = random.Random(3)
    stock = ["".join(chance.choices("bcdfghjklmnp", k=6)) for _ in range(900)]
    return [
        {
            "id": f"z{number:04}",
            "title": " ".join(chance.sample(stock, 3)),
            "summary": " ".join(chance.sample(stock, 6)),
        }
        for number in range(count)
    ]


def merged(topics: Sequence[Topic], **given: Any) -> list[set[str]]:
    """Groups of topics that are merged, by id."""
    found = dedupe(topics, **given)
    ids = corpus(topics).topics["id"].to_numpy()
    parts = [set(ids[found.groups == number].tolist()) for number in np.unique(found.groups)]
    return [part for part in parts if len(part) > 1]


def named(**topics: Topic) -> list[Topic]:
    return [QUARTZ | {"id": name} | topic for name, topic in topics.items()]


# What is merged


def test_equal_topics_are_merged_and_nothing_else() -> None:
    assert merged([*named(a={}, b={}, c={}), *crowd()]) == [{"a", "b", "c"}]


def test_a_store_of_unrelated_topics_is_unchanged() -> None:
    assert merged(crowd()) == []


@pytest.mark.parametrize("other", [{"scope": "user:ben"}, {"topic_kind": "person"}])
def test_topics_of_another_scope_or_kind_are_never_merged(other: Topic) -> None:
    assert merged([*named(a={"topic_kind": "deal"}, b={"topic_kind": "deal"} | other), *crowd()]) == []


def test_a_topic_without_a_kind_joins_one_that_has_one() -> None:
    assert merged([*named(a={"topic_kind": "deal"}, b={}), *crowd()]) == [{"a", "b"}]


def test_a_topic_without_a_kind_does_not_join_two_kinds() -> None:
    three = named(a={"topic_kind": "deal"}, b={"topic_kind": "person"}, c={})
    assert not any({"a", "b"} <= part for part in merged([*three, *crowd()]))


def test_same_title_with_other_values_and_another_summary_is_not_merged() -> None:
    one = {"title": "Weekly report", "summary": "Sales rose in spring", "fields": {"owner": "Aya", "week": 7}}
    other = {"title": "Weekly report", "summary": "The lift is broken again", "fields": {"owner": "Ben", "week": 31}}
    assert merged([{"id": "a"} | one, {"id": "b"} | other, *crowd()]) == []


# Constraints


def test_topics_judged_different_are_not_merged_through_others() -> None:
    limits = constraints(ledger(judged("a", "b", "different")), empty(EVIDENCE_TOPIC))
    assert not any({"a", "b"} <= part for part in merged([*named(a={}, b={}, c={}, d={}), *crowd()], limits=limits))


def test_topics_judged_different_are_not_merged_through_others_where_they_were_never_compared() -> None:
    limits = constraints(ledger(judged("a", "b", "different")), empty(EVIDENCE_TOPIC))
    three = named(a={"topic_kind": "deal"}, b={"topic_kind": "person"}, c={}, d={})
    assert not any({"a", "b"} <= part for part in merged([*three, *crowd()], limits=limits))


def test_topics_with_different_keys_are_not_merged_through_others() -> None:
    four = named(a={"keys": ["crm/1"]}, b={"keys": ["crm/2"]}, c={}, d={})
    assert not any({"a", "b"} <= part for part in merged([*four, *crowd()]))


def test_what_is_apart_stays_apart_in_a_group_too_large_to_compare_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours are few and the group is not completed, so most of its pairs were never compared."""
    monkeypatch.setattr(blocking, "MAX_GROUP", 3)
    monkeypatch.setattr(blocking, "NEIGHBOURS", 6)
    keyed = named(**{f"k{number}": {"keys": [f"crm/{number}"]} for number in (1, 2)})
    plain = named(**{f"n{number}": {} for number in range(6)})
    found = merged([*keyed, *plain, *crowd()])
    assert found
    assert not any({"k1", "k2"} <= part for part in found)


# Near-identical families


def family(unit: int, revision: int) -> Topic:
    return {
        "title": f"Unit {unit} rev {revision}",
        "summary": "Handbook of the machine in the hall",
        "fields": {
            "site": ("Lyon", "Oslo", "Graz")[unit % 3],
            "owner": ("Aya", "Ben", "Cleo", "Dana", "Edo")[unit * revision % 5],
            "installed": 1990 + (unit * 7 + revision) % 35,
        },
    }


def test_of_300_families_exact_repeats_are_merged_and_nothing_that_differs_in_a_number() -> None:
    families = [family(unit, revision) for unit in range(1, 301) for revision in (1, 2, 3)]
    topics = [*families, *families[::9]]
    found = dedupe(topics)
    titles = np.array(corpus(topics).titles)
    same = titles[found.pairs.a] == titles[found.pairs.b]
    assert not found.grouped[~same].any()
    assert same.sum() == len(families[::9])
    assert found.grouped[same].mean() > 0.9


# Counting


def test_the_calibration_adds_up_to_what_was_compared_and_merged() -> None:
    found: Deduplicated = dedupe([*named(a={}, b={}, c={}), *crowd(60)])
    table, probability = calibration([found]), found.scored.probability
    assert table["pairs"].sum() == len(found.pairs)
    assert table["merged"].sum() == found.grouped.sum() == 3
    made = found.pairs.where(found.grouped)
    expected = (1 - in_group(made.a, made.b, probability[found.grouped])).sum()
    assert table["expected_false"].sum() == pytest.approx(expected, abs=0.02)
    assert table.filter(pl.col("merged") == 0)["expected_false"].sum() == 0


# Stores too small to fit


def deal(name: str, owner: str, title: str = "Acme renewal", **content: Any) -> Topic:
    return {"id": name, "title": title, "kind": "deal", "fields": {"owner": owner}} | content


def test_in_a_store_of_three_the_same_title_and_owner_are_merged() -> None:
    other = deal("c", "Priya", "Globex renewal")
    assert merged([deal("a", "Aya"), deal("b", "Aya"), other]) == [{"a", "b"}]


def test_in_a_store_of_three_another_owner_needs_review() -> None:
    found = dedupe([deal("a", "Aya"), deal("b", "Priya"), deal("c", "Aya", "Globex renewal")])
    assert not found.grouped.any()
    assert 0.4 < found.scored.probability.max() < 0.9


def test_in_a_store_of_three_the_title_alone_does_not_suffice() -> None:
    about = {"a": "Bugs of the login form and who mends them", "b": "Hiring another designer before summer"}
    meetings = [{"id": name, "title": "Weekly meeting", "summary": summary} for name, summary in about.items()]
    assert merged([*meetings, {"id": "c", "title": "Lunch"}]) == []
