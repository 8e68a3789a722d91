"""Verdicts, suggested pairs and undone merges, read back from recorded decisions."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.fold.decisions import judgements, merges, suggestions, undone

FEATURES = [{"name": "title", "value": 0.9, "weight": 2.5}, {"name": "owner", "value": 0.0, "weight": -3.0}]


def ledger(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Decisions (columns DECISION) from kind, topic, payload and evidence."""
    decided = [
        {
            "kind": kind,
            "scope": "user:aya",
            "topic_id": topic,
            "payload_json": json.dumps(payload),
            "evidence_ids": [*evidence],
            "reason": "because",
        }
        for kind, topic, payload, *evidence in rows
    ]
    return pl.DataFrame(decided, schema=DECISION)


def judged(a: str, b: str, verdict: str) -> tuple[Any, ...]:
    return "judged", a, {"a": a, "b": b, "verdict": verdict, "actor": "person"}


def merged(dropped: str, survivor: str, weight: float | None = None) -> tuple[Any, ...]:
    payload = {"survivor": survivor, "dropped_title": dropped, "dropped_kind": None}
    return "merged", dropped, payload | {"probability": 0.99, "weight": weight, "features": FEATURES}


def unmerged(dropped: str, survivor: str, *evidence: str, weight: float | None = None) -> tuple[Any, ...]:
    return "unmerged", dropped, {"survivor": survivor, "weight": weight, "actor": "person"}, *evidence


def suggested(a: str, b: str, value: float = 0.5) -> tuple[Any, ...]:
    payload = {"a": a, "b": b, "probability": 0.6, "weight": 0.4, "value": value, "features": FEATURES}
    return "pair_suggested", a, payload


def withdrawn(a: str, b: str) -> tuple[Any, ...]:
    return "pair_withdrawn", a, {"a": a, "b": b}


def test_an_empty_ledger_gives_empty_frames() -> None:
    assert judgements(ledger()).schema == {"a": pl.String, "b": pl.String, "verdict": pl.String}
    assert undone(ledger()).columns == ["a", "b", "scope", "weight", "evidence_ids"]
    assert suggestions(ledger()).columns == [
        "a",
        "b",
        "scope",
        "probability",
        "weight",
        "value",
        "pair_kind",
        "features",
    ]
    assert judgements(ledger()).height == undone(ledger()).height == suggestions(ledger()).height == 0


# Verdicts


def test_the_last_verdict_on_a_pair_counts_and_a_skip_is_kept() -> None:
    rows = ledger(
        judged("a", "b", "different"), judged("a", "c", "skip"), judged("a", "b", "same"), judged("b", "c", "same")
    )
    assert judgements(rows).rows() == [("a", "b", "same"), ("a", "c", "skip"), ("b", "c", "same")]


def test_a_skip_replaces_no_verdict() -> None:
    rows = ledger(judged("a", "b", "different"), judged("a", "b", "skip"), judged("a", "c", "skip"))
    assert judgements(rows).rows() == [("a", "b", "different"), ("a", "c", "skip")]


@pytest.mark.parametrize(
    ("then", "holds"),
    [
        ([], True),
        ([merged("b", "a")], True),
        ([merged("b", "a"), unmerged("b", "a")], False),
        ([merged("b", "a"), unmerged("b", "a"), judged("a", "b", "same"), merged("b", "a")], True),
        ([merged("b", "a"), merged("a", "c"), unmerged("a", "c")], True),
        ([merged("x", "y"), unmerged("x", "y")], True),
    ],
    ids=["verdict only", "merged", "undone", "verdict again", "another merge undone", "of other topics"],
)
def test_a_verdict_same_ends_when_its_merge_is_undone(then: list[tuple[Any, ...]], holds: bool) -> None:
    found = judgements(ledger(judged("a", "b", "same"), *then))
    assert found["verdict"].to_list() == (["same"] if holds else [])


def test_a_topic_freed_from_a_group_ends_every_verdict_that_would_bring_it_back() -> None:
    """`c` came to `a` over `b`; only the verdict on `b` and `c` says so."""
    rows = [judged("a", "b", "same"), judged("b", "c", "same"), merged("b", "a"), merged("c", "a"), unmerged("c", "a")]
    assert judgements(ledger(*rows)).rows() == [("a", "b", "same")]


def test_a_verdict_different_outlives_every_undo() -> None:
    rows = ledger(judged("a", "b", "different"), merged("b", "c"), unmerged("b", "c"))
    assert judgements(rows).rows() == [("a", "b", "different")]


# Undone merges


def test_an_undone_pair_keeps_its_weight_and_the_evidence_known_then() -> None:
    rows = ledger(merged("b", "a", 4.5), unmerged("b", "a", "e1", "e2", weight=4.5))
    assert undone(rows).rows() == [("a", "b", "user:aya", 4.5, ["e1", "e2"])]
    assert merges(rows).is_empty()


def test_a_pair_merged_again_is_not_undone_whichever_survives() -> None:
    for again in (merged("b", "a"), merged("a", "b")):
        rows = ledger(merged("b", "a"), unmerged("b", "a"), again)
        assert undone(rows).is_empty()
        assert merges(rows)["dropped"].to_list() == [again[1]]


def test_a_topic_merged_elsewhere_later_is_still_undone_with_its_first_survivor() -> None:
    rows = ledger(merged("b", "a", 1.0), unmerged("b", "a", "e1", weight=1.0), merged("b", "c", 2.0))
    assert undone(rows).select("a", "b").rows() == [("a", "b")]


def test_a_merge_without_a_weight_is_undone_without_one() -> None:
    assert undone(ledger(merged("b", "a"), unmerged("b", "a", "e1")))["weight"].to_list() == [None]


# Suggestions


@pytest.mark.parametrize(
    ("then", "waits"),
    [
        ([], True),
        ([withdrawn("a", "b")], False),
        ([withdrawn("a", "b"), suggested("a", "b")], True),
        ([judged("a", "b", "same")], False),
        ([judged("a", "b", "different")], False),
        ([judged("a", "b", "skip")], True),
        ([judged("a", "b", "different"), suggested("a", "b")], True),
        ([judged("a", "c", "different")], True),
        ([merged("b", "z")], False),
        ([merged("a", "z")], False),
        ([merged("z", "a")], True),
        ([merged("b", "z"), unmerged("b", "z")], True),
    ],
)
def test_a_suggestion_waits_until_it_is_withdrawn_judged_or_merged_away(
    then: list[tuple[Any, ...]], waits: bool
) -> None:
    assert suggestions(ledger(suggested("a", "b"), *then)).height == waits


def test_a_suggestion_has_the_values_of_the_last_run() -> None:
    (row,) = suggestions(ledger(suggested("a", "b", 0.1), suggested("a", "b", 0.9))).to_dicts()
    assert row == {
        "a": "a", "b": "b", "scope": "user:aya", "probability": 0.6, "weight": 0.4, "value": 0.9, "pair_kind": None,
        "features": FEATURES,
    }  # fmt: skip
