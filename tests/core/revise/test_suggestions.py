"""Open suggestions over the nights: which pairs, how often, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from msgspec import json as msgjson

from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS
from memstate_core.policy.settings import Policy
from memstate_core.revise.suggestions import DRIFT, suggested
from memstate_core.state.fold.decisions import suggestions
from tests.core.frames import filled
from tests.core.revise.test_verdicts import FEATURES, judged, ledger, merged, unmerged

Row = tuple[str, str, float]
Decisions = list[tuple[str, str, str]]


def band(*rows: Row, kind: str = "review") -> pl.DataFrame:
    rows = [
        {"a": a, "b": b, "scope": "user:aya", "probability": p, "weight": 0.4, "value": p, "pair_kind": "/"}
        | {"band": kind, "features": FEATURES}
        for a, b, p in rows
    ]
    return pl.DataFrame(rows, schema=PAIRS)


def night(pairs: pl.DataFrame, before: pl.DataFrame, most: int = 9) -> pl.DataFrame:
    decided = suggested(pairs, before, Policy(review_max_pairs=most), pl.Series(["user:aya"]))
    assert decided.schema == DECISION
    return decided


def decisions_of(decisions: pl.DataFrame) -> Decisions:
    """Kind and both topics of each decision."""
    decoded = [msgjson.decode(payload) for payload in decisions["payload_json"]]
    return [(kind, one["a"], one["b"]) for kind, one in zip(decisions["kind"], decoded, strict=True)]


def nights(*tonight: pl.DataFrame, decided: Sequence[tuple[Any, ...]] = ()) -> list[Decisions]:
    """The decisions of each night, with verdicts on the day after the first."""
    before, every = ledger(), []
    for number, pairs in enumerate(tonight):
        new = night(pairs, before)
        every.append(decisions_of(new))
        before = pl.concat([before, new, ledger(*decided) if number == 0 else ledger()])
    return every


SUGGESTED: Decisions = [("pair_suggested", "a", "b")]
GONE: Decisions = [("pair_withdrawn", "a", "b")]
OPEN = band(("a", "b", 0.6))


def test_a_pair_is_suggested_once() -> None:
    assert nights(OPEN, OPEN, OPEN) == [SUGGESTED, [], []]


def test_a_suggestion_is_renewed_when_its_probability_has_moved() -> None:
    moved, still = band(("a", "b", 0.6 + DRIFT + 0.01)), band(("a", "b", 0.6 + DRIFT - 0.01))
    assert nights(OPEN, still, moved, moved) == [SUGGESTED, [], SUGGESTED, []]


def test_a_suggestion_is_renewed_when_answers_about_others_have_moved_its_value() -> None:
    valued = [OPEN.with_columns(value=pl.lit(value)) for value in (0.6, 0.6 + DRIFT - 0.01, 0.3)]
    assert nights(*valued) == [SUGGESTED, [], SUGGESTED]


def test_a_value_of_many_pairs_moves_by_its_share() -> None:
    valued = [OPEN.with_columns(value=pl.lit(value)) for value in (40.0, 40.0 + 39 * DRIFT, 40.0 + 41 * DRIFT)]
    assert nights(*valued) == [SUGGESTED, [], SUGGESTED]


def test_a_suggestion_is_renewed_when_another_sign_contradicts() -> None:
    assert nights(OPEN, OPEN.with_columns(pair_kind=pl.lit("field/"))) == [SUGGESTED, SUGGESTED]


def test_pairs_are_chosen_and_asked_by_value_not_by_probability() -> None:
    doubted = band(("a", "b", 0.8)).with_columns(value=pl.lit(0.1))
    pairs = pl.concat([doubted, band(("a", "c", 0.3)).with_columns(value=pl.lit(0.7))])
    assert decisions_of(night(pairs, ledger(), most=1)) == [("pair_suggested", "a", "c")]


@pytest.mark.parametrize("then", [band(), band(("c", "d", 0.6), kind="merge"), band(("a", "b", 0.95), kind="merge")])
def test_a_suggestion_is_withdrawn_once_when_it_leaves_the_band(then: pl.DataFrame) -> None:
    assert nights(OPEN, then, then, OPEN) == [SUGGESTED, GONE, [], SUGGESTED]


def test_only_the_review_band_is_suggested() -> None:
    assert nights(band(("a", "b", 0.95), kind="merge")) == [[]]


# After a verdict


def test_a_pair_judged_different_is_not_suggested_again() -> None:
    assert nights(OPEN, OPEN, decided=[judged("a", "b", "different")]) == [SUGGESTED, []]


def test_a_pair_judged_different_is_not_suggested_under_the_survivor_of_one_side() -> None:
    decided = [judged("b", "c", "different"), merged("b", "a")]
    assert nights(band(), band(("a", "c", 0.6), ("a", "d", 0.6)), decided=decided) == [
        [],
        [("pair_suggested", "a", "d")],
    ]


def test_a_restored_topic_is_suggested_where_only_its_survivor_was_judged() -> None:
    decided = [merged("b", "a"), judged("a", "c", "different"), unmerged("b", "a")]
    assert nights(band(), band(("a", "c", 0.6), ("b", "c", 0.6)), decided=decided)[1] == [("pair_suggested", "b", "c")]


def test_a_skipped_pair_stays_open_without_a_new_suggestion() -> None:
    assert nights(OPEN, OPEN, decided=[judged("a", "b", "skip")]) == [SUGGESTED, []]


def test_a_verdict_same_whose_merge_was_undone_is_suggested_again() -> None:
    decided = [judged("a", "b", "same"), merged("b", "a"), unmerged("b", "a")]
    assert nights(OPEN, OPEN, decided=decided) == [SUGGESTED, SUGGESTED]


# Which and how many

MANY = band(("a", "b", 0.9), ("a", "c", 0.5), ("a", "d", 0.7), ("a", "e", 0.5), ("a", "f", 0.6))


def others(decisions: pl.DataFrame) -> list[str]:
    return [b for _, _, b in decisions_of(decisions)]


def test_the_likeliest_come_first() -> None:
    """An answer on them merges most often, and nothing else can: a contradiction keeps them from a merge."""
    assert others(night(MANY, ledger())) == ["b", "d", "f", "c", "e"]


def test_pairs_of_one_value_come_in_random_order_the_likely_ones_first() -> None:
    pairs = [("a", other, 0.9) for other in "bcdefghijk"]
    unlikely = band(*[(a, b, 0.4) for a, b, _ in pairs[:5]]).with_columns(value=pl.lit(0.9))
    rows = pl.concat([unlikely, band(*pairs[5:])])
    found = others(night(rows, ledger(), most=10))
    assert sorted(found[:5]) == ["g", "h", "i", "j", "k"]
    assert found not in (sorted(found[:5]) + sorted(found[5:]), sorted(found))
    assert others(night(rows.sample(fraction=1, shuffle=True, seed=1), ledger(), most=10)) == found


@pytest.mark.parametrize("most", [0, 2, 5])
def test_no_more_than_policy_allows_are_open(most: int) -> None:
    first = night(MANY, ledger(), most=most)
    assert others(first) == ["b", "d", "f", "c", "e"][:most]
    assert suggestions(first).height == most


def test_a_smaller_limit_withdraws_the_least_valuable() -> None:
    first = night(MANY, ledger())
    second = night(MANY, first, most=2)
    assert {kind for kind, _, _ in decisions_of(second)} == {"pair_withdrawn"}
    assert others(second) == ["c", "e", "f"]


def test_a_suggestion_carries_what_a_person_needs_to_decide() -> None:
    first = night(OPEN, ledger())
    (row,) = first.rows(named=True)
    assert (row["scope"], row["topic_id"]) == ("user:aya", "a")
    assert "0.6" in row["reason"]
    payload = msgjson.decode(row["payload_json"])
    assert payload.pop("value") == 0.6
    assert payload == {"a": "a", "b": "b", "probability": 0.6, "weight": 0.4, "pair_kind": "/", "features": FEATURES}
    assert filled(suggestions(first), {"a": pl.String}).rows() == [("a",)]
