"""Merges of pairs in the merge band: survivors, recorded decisions, chains of merges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json as msgjson

from memstate_core.model.graph_tables import TOPICS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS
from memstate_core.revise.merge import decide
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.identity import survivors
from tests.core.frames import filled
from tests.core.strategies import SCOPES, day

NAMES = "abcdef"
Pair = tuple[str, str, float]
"""Two topics of one group, and the probability that they are one."""

pair_sets = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from((0.6, 0.9, 0.99)),
    max_size=8,
).map(lambda pairs: [(*pair, probability) for pair, probability in pairs.items()])


def pair_frame(pairs: Sequence[Pair], band: str = "merge") -> pl.DataFrame:
    """Each pair with the same features: `title` has the largest weight, `rank` the smallest."""
    weights = {"title": 3.0, "rank": 0.5, "summary": 2.0, "field:owner": 1.0}
    features = [{"name": name, "value": 1.0, "weight": weight} for name, weight in weights.items()]
    rows = [
        {"a": a, "b": b, "scope": SCOPES[0], "probability": p, "weight": math.log(p / (1 - p)), "features": features}
        | {"confirmed_by": 0}
        for a, b, p in pairs
    ]
    frame = pl.DataFrame(rows, schema={name: PAIRS[name] for name in PAIRS if name != "band"})
    return filled(frame.with_columns(band=pl.lit(band)), PAIRS)


def topic_frame(created: dict[str, int] | None = None) -> pl.DataFrame:
    ages = dict.fromkeys(NAMES, 0) | (created or {})
    rows = [{"id": name, "scope": SCOPES[0], "title": name.upper(), "created_at": day(at)} for name, at in ages.items()]
    return filled(pl.DataFrame(rows), TOPICS).select("id", "scope", "title", "topic_kind", "created_at")


def merges(pairs: Sequence[Pair], created: dict[str, int] | None = None) -> dict[str, str]:
    """Dropped topics and their survivors."""
    frame = decide(pair_frame(pairs), topic_frame(created))
    assert frame.schema == DECISION
    return dict(decided.merges(frame).select("dropped", "survivor").iter_rows())


def payloads(pairs: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """What each decision records, by the topic that is dropped."""
    rows = decide(pairs, topic_frame()).select("topic_id", "payload_json").rows()
    return {topic: msgjson.decode(payload) for topic, payload in rows}


def by_hand(pairs: Sequence[Pair]) -> dict[str, str]:
    """Groups by painting: every pair gives both topics' groups one colour."""
    colour = {name: name for name in NAMES}
    for a, b, _ in pairs:
        colour = {name: colour[a] if of == colour[b] else of for name, of in colour.items()}
    first = {of: min(name for name in NAMES if colour[name] == of) for of in colour.values()}
    return {name: first[of] for name, of in colour.items() if name != first[of]}


# Who survives


@pytest.mark.slow
@given(pair_sets, st.randoms(use_true_random=False))
def test_groups_become_one_topic_each_in_any_order_of_pairs(pairs: list[Pair], chance: Any) -> None:
    assert merges(chance.sample(pairs, len(pairs))) == merges(pairs) == by_hand(pairs)


def test_the_survivor_is_the_one_that_was_there_first() -> None:
    assert merges([("a", "b", 0.9), ("b", "c", 0.9)], created={"a": 2, "b": 1, "c": 3}) == {"a": "b", "c": "b"}


def test_of_the_same_age_the_first_by_id_survives() -> None:
    assert merges([("b", "c", 0.9), ("a", "c", 0.9)]) == {"b": "a", "c": "a"}


@pytest.mark.parametrize("band", ["review", "ignore"])
def test_outside_the_merge_band_nothing_is_decided(band: str) -> None:
    assert decide(pair_frame([("a", "b", 0.99)], band), topic_frame()).is_empty()
    assert merges([]) == {}


# What is recorded


def test_a_decision_holds_the_survivor_and_its_reasons() -> None:
    (row,) = decide(pair_frame([("a", "b", 0.99)]), topic_frame()).rows(named=True)
    payload = msgjson.decode(row["payload_json"])
    assert (row["kind"], row["topic_id"], row["scope"]) == ("merged", "b", SCOPES[0])
    assert row["reason"] == "the same with probability 0.99: title, summary, field:owner"
    assert {feature["name"] for feature in payload.pop("features")} == {"title", "rank", "summary", "field:owner"}
    assert payload.pop("weight") == pytest.approx(math.log(99))
    named = {"survivor": "a", "partner": "a", "survivor_title": "A", "dropped_title": "B", "dropped_kind": None}
    assert payload == named | {"probability": 0.99, "reading": None, "confirmed_by": 0}


def test_a_decision_says_how_many_answers_confirm_its_strongest_pair() -> None:
    pairs = pair_frame([("a", "b", 0.9), ("a", "c", 0.6), ("b", "c", 0.99)])
    decided = decide(pairs.with_columns(confirmed_by=pl.Series([60, 0, 70])), topic_frame())
    assert [msgjson.decode(payload)["confirmed_by"] for payload in decided["payload_json"]] == [70, 70]
    assert decided["reason"].str.ends_with("; 70 answers about such pairs confirm it").all()
    decided = decide(pairs.with_columns(confirmed_by=pl.Series([60, 0, 0])), topic_frame())
    assert [msgjson.decode(payload)["confirmed_by"] for payload in decided["payload_json"]] == [0, 0]


def test_in_a_group_a_decision_holds_the_mean_probability_and_the_strongest_pair() -> None:
    recorded = payloads(pair_frame([("a", "b", 0.9), ("a", "c", 0.6), ("b", "c", 0.99)]))
    assert {name: one["probability"] for name, one in recorded.items()} == pytest.approx({"b": 0.945, "c": 0.795})
    assert {name: one["weight"] for name, one in recorded.items()} == pytest.approx(
        {"b": math.log(99), "c": math.log(99)}
    )
    assert {one["survivor"] for one in recorded.values()} == {"a"}


def test_a_decision_holds_the_reading_of_its_strongest_pair_from_its_own_side() -> None:
    pairs = pair_frame([("a", "b", 0.9), ("a", "c", 0.6), ("b", "c", 0.99)])
    values = [{"name": "field:price", "a": f"{a} of {a}{b}", "b": f"{b} of {a}{b}"} for a, b in pairs["a", "b"].rows()]
    readings = [{"agree": ["title"], "differ": [value], "only": [], "shared_by": 2} for value in values]
    recorded = payloads(pairs.with_columns(reading=pl.Series(readings, dtype=PAIRS["reading"])))
    sides = {name: (one["partner"], one["reading"]["differ"]) for name, one in recorded.items()}
    price = {"name": "field:price"}
    assert sides == {
        "b": ("c", [price | {"dropped": "b of bc", "partner": "c of bc"}]),
        "c": ("b", [price | {"dropped": "c of bc", "partner": "b of bc"}]),
    }
    assert recorded["b"]["reading"]["shared_by"] == 2


# Chains of merges over the nights

forests = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 39)), max_size=40).map(
    lambda pairs: {f"t{of}": f"t{onto % of}" for of, onto in pairs}
)


@given(forests)
def test_chains_resolve_to_their_last_survivor(onto: dict[str, str]) -> None:
    frame = pl.DataFrame(
        {"dropped": [*onto], "survivor": [*onto.values()]},
        schema_overrides={"dropped": pl.String, "survivor": pl.String},
    )
    followed = dict(survivors(frame).iter_rows())
    for dropped, survivor in onto.items():
        while survivor in onto:
            survivor = onto[survivor]
        assert followed[dropped] == survivor


def test_a_long_chain_resolves() -> None:
    names = [f"t{number:04}" for number in range(3000)]
    frame = pl.DataFrame({"dropped": names[:-1], "survivor": names[1:]})
    assert survivors(frame)["survivor"].unique().to_list() == [names[-1]]


def test_a_circle_of_merges_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        survivors(pl.DataFrame({"dropped": ["a", "b", "c"], "survivor": ["b", "c", "a"]}))
