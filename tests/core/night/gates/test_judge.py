"""Each gate fails on a night that it is made for, and passes on healthy ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from memstate_core.night.gates.judge import judge, not_measured
from memstate_core.night.gates.measure import TOPICS, Night
from memstate_core.night.gates.recall_loss import RecallLoss
from memstate_core.night.gates.verdict import GATES, Verdict
from memstate_core.policy.sections.gates import GateSettings

LIMITS = GateSettings()


def topics(*groups: tuple[int, str | None, str | None, str | None]) -> pl.DataFrame:
    """Topics by number: their scope in the base, and their scope and state now."""
    rows = [row for n, *row in groups for _ in range(n)]
    return pl.DataFrame([[f"t{at}", *row] for at, row in enumerate(rows)], TOPICS, orient="row")


def kept(n: int, scope: str = "user:a") -> tuple[int, str, str, str]:
    return n, scope, scope, "active"


def left(n: int, state: str, scope: str = "user:a") -> tuple[int, str, str, str]:
    return n, scope, scope, state


def gone(n: int, scope: str = "user:a") -> tuple[int, str, None, None]:
    return n, scope, None, None


def made(n: int, scope: str = "user:a") -> tuple[int, None, str, str]:
    return n, None, scope, "active"


def verdict(gate: str, limits: GateSettings = LIMITS, **night: Any) -> Verdict:
    return next(one for one in judge(Night(**night), limits) if one.gate == gate)


def merged(n: int, probability: float) -> pl.Series:
    return pl.Series([probability] * n, dtype=pl.Float64)


def seconds(*past: float) -> Sequence[dict[str, float]]:
    return [{"topics": took, "snapshot": 1000.0} for took in past]


HEALTHY: list[tuple[str, dict[str, Any]]] = [
    ("expected_false_merges", {"merge_probabilities": merged(1, 0.55)}),
    ("expected_false_merges", {"merge_probabilities": merged(10_000, 0.99)}),
    ("shrinkage", {"has_base": False, "topics": topics(made(10_000)), "evidence": 10_000}),
    ("shrinkage", {"topics": topics(kept(300), left(100, "merged")), "evidence_before": 400, "evidence": 400}),
    ("shrinkage", {"topics": topics(kept(10), left(390, "archived")), "policy_is_unchanged": True}),
    ("shrinkage", {"topics": topics(kept(10), left(390, "merged"))}),
    ("shrinkage", {"topics": topics(kept(1), gone(98)), "evidence_before": 99, "evidence": 1}),
    ("growth", {"has_base": False, "topics": topics(made(10_000)), "evidence": 100_000}),
    ("growth", {"topics": topics(kept(99), made(10_000)), "evidence_before": 99, "evidence": 100_000}),
    ("quarantine_share", {"read": 10, "refused": 10}),
    ("quarantine_share", {"read": 1000, "refused": 200}),
    ("scope_vanished", {"has_base": False}),
    ("scope_vanished", {"topics": topics(kept(1), left(9, "archived"))}),
    ("scope_vanished", {"topics": topics(left(2, "archived"), left(7, "merged"), kept(5, "user:b"))}),
    ("scope_vanished", {"topics": topics(gone(9), made(1))}),
    ("duration", {"seconds": {"topics": 900.0}, "past": seconds(1, 1, 1, 1)}),
    ("duration", {"seconds": {"topics": 59.0}, "past": seconds(1, 1, 1, 1, 1)}),
    ("duration", {"seconds": {"topics": 300.0}, "past": seconds(100, 100, 100, 1, 900)}),
    ("duration", {"seconds": {"new_step": 300.0}, "past": seconds(1, 1, 1, 1, 1)}),
    ("recall", {}),
    ("recall", {"recall": RecallLoss(20, before=90.0, after=85.0, lost=["q.jsonl line 1: topic t1 is gone"])}),
    ("recall", {"recall": RecallLoss(20, before=60.0, after=80.0)}),
]
FAILING: list[tuple[str, dict[str, Any], str]] = [
    ("expected_false_merges", {"merge_probabilities": merged(100, 0.85)}, "15.00 of 100 merges"),
    (
        "shrinkage",
        {"topics": topics(kept(100), left(50, "merged")), "policy_is_unchanged": False},
        "33.3 % fewer topics",
    ),
    ("shrinkage", {"topics": topics(kept(1000)), "evidence_before": 1000, "evidence": 900}, "10.0 % less evidence"),
    (
        "shrinkage",
        {"topics": topics(kept(100), left(50, "archived")), "policy_is_unchanged": False},
        "50 archived and 0 merged by a policy that changed",
    ),
    ("shrinkage", {"topics": topics(kept(100), gone(50)), "policy_is_unchanged": True}, "50 gone"),
    ("growth", {"topics": topics(kept(100), made(401))}, "active topics 100 before, 501 now"),
    ("growth", {"evidence_before": 100, "evidence": 501}, "evidence 100 before, 501 now"),
    ("quarantine_share", {"read": 100, "refused": 21}, "21 of 100 rows refused"),
    ("scope_vanished", {"topics": topics(kept(50), gone(1, "user:b"))}, "user:b had 1"),
    ("scope_vanished", {"topics": topics(left(8, "archived", "user:b"), gone(1, "user:b"))}, "user:b had 9"),
    ("scope_vanished", {"topics": topics((3, "user:b", "user:a", "active"))}, "user:b had 3"),
    (
        "scope_vanished",
        {"topics": topics(left(9, "archived", "user:b")), "policy_is_unchanged": False},
        "1 of 1 scopes without active topics (user:b had 9)",
    ),
    ("duration", {"seconds": {"topics": 301.0}, "past": seconds(100, 100, 100, 1, 900)}, "301.0 s, median 100.0 s"),
    ("recall", {"recall": RecallLoss(20, 90.0, 84.9)}, "recall of 20 questions 90.0 % in what is served, 84.9 % now"),
    ("recall", {"recall": RecallLoss(1, 90.0, 0.0, ["q line 1: topic t1 was merged"] * 7)}, "merged and 2 more)"),
]


@pytest.mark.parametrize(("gate", "night"), HEALTHY)
def test_a_healthy_night_passes(gate: str, night: dict[str, Any]) -> None:
    assert verdict(gate, **night).passed


@pytest.mark.parametrize(("gate", "night", "found"), FAILING)
def test_a_night_beyond_a_limit_fails(gate: str, night: dict[str, Any], found: str) -> None:
    judged = judge(Night(**night), LIMITS)
    failed = next(one for one in judged if one.gate == gate)
    assert not failed.passed
    assert found in failed.found
    assert "`memstate " in failed.look_at
    assert failed.is_refusing == (getattr(LIMITS, gate) == "error")
    related = {"scope_vanished", "shrinkage"}
    assert {one.gate for one in judged if not one.passed} <= {gate} | (related if gate in related else set())


def test_every_gate_has_a_case_of_both_kinds_and_a_setting() -> None:
    assert {gate for gate, *_ in HEALTHY} == {gate for gate, *_ in FAILING} == GATES.keys()
    assert GATES.keys() <= GateSettings.model_fields.keys()


def test_a_setting_switches_a_gate_off_or_lets_it_warn() -> None:
    night = {"topics": topics(kept(100), gone(50))}
    off = judge(Night(**night), GateSettings(shrinkage="off"))
    assert [one.gate for one in off] == [name for name in GATES if name != "shrinkage"]
    warned = verdict("shrinkage", GateSettings(shrinkage="warn"), **night)
    assert (warned.passed, warned.is_refusing, warned.rank) == (False, False, "WARN")


def test_a_night_that_sets_rows_aside_is_not_refused_for_loss() -> None:
    night = {"topics": topics(gone(150, "user:b"), kept(1)), "sets_aside": True}
    limits = GateSettings(scope_vanished="error")
    judged = [one for one in judge(Night(**night), limits) if not one.passed]
    assert [(one.gate, one.is_refusing) for one in judged] == [("shrinkage", False), ("scope_vanished", False)]
    assert all(one.is_refusing for one in judge(Night(**night | {"sets_aside": False}), limits) if not one.passed)


def test_what_questions_lose_refuses_no_night_that_sets_rows_aside_or_that_nobody_could_ask() -> None:
    loss = RecallLoss(20, 90.0, 10.0)
    assert verdict("recall", recall=loss).is_refusing
    assert not verdict("recall", recall=loss, sets_aside=True).is_refusing
    unasked = verdict("recall", recall=RecallLoss(problem="questions.jsonl: no such file"))
    assert (unasked.passed, unasked.is_refusing) == (False, False)
    assert "not measured: questions.jsonl" in unasked.found


def test_an_unchanged_policy_is_named_where_a_scope_has_no_topics_left() -> None:
    found = verdict("scope_vanished", topics=topics(left(3, "archived")))
    assert found.found == "0 of 1 scopes without active topics; 1 more by an unchanged policy"


def test_a_damaged_night_of_many_scopes_names_the_first() -> None:
    night = topics(*[gone(1, f"user:u{n}") for n in range(9)])
    assert "user:u4 had 1 and 4 more" in verdict("scope_vanished", topics=night).found


def test_a_night_that_cannot_be_measured_warns_at_every_gate() -> None:
    found = not_measured("OverflowError: too large")
    assert [one.gate for one in found] == list(GATES)
    assert {(one.passed, one.is_refusing, one.found) for one in found} == {(False, False, "OverflowError: too large")}
