"""Acceptances name gates and a reason, let refusing failures through, and are decisions of the run."""

from __future__ import annotations

import json

import pytest

from memstate_core.model.errors import AcceptanceInvalid
from memstate_core.night.gates.acceptance import Acceptance, acceptance, acceptance_decisions, accepting
from memstate_core.night.gates.verdict import GATES, Verdict

REFUSED = Verdict("shrinkage", "error", False, "40 %", "25 %", "look")
WARNED = Verdict("growth", "warn", False, "9", "5", "look")
PASSED = Verdict("scope_vanished", "error", True, "0", "none", "look")


def test_an_accepted_failure_warns_and_is_recorded() -> None:
    given = acceptance(["shrinkage", "growth", "scope_vanished", "shrinkage"], " agreed ", "aya")
    assert given == Acceptance(("shrinkage", "growth", "scope_vanished"), "agreed", "aya")
    judged = accepting([REFUSED, WARNED, PASSED], given)
    assert [verdict.is_refusing for verdict in judged] == [False] * 3
    assert [verdict.accepted for verdict in judged] == ["aya: agreed", None, None]
    assert judged[0].to_json()["severity"] == "WARN"
    assert judged[0].to_json()["detail"] == "40 %; expected 25 %; accepted by aya: agreed"
    (row,) = acceptance_decisions(judged, given).to_dicts()
    assert (row["kind"], row["reason"], row["scope"], row["topic_id"]) == ("accepted", "agreed", None, None)
    assert json.loads(row["payload_json"]) == {"gate": "shrinkage", "found": "40 %", "expected": "25 %", "by": "aya"}


def test_without_an_acceptance_a_failure_refuses() -> None:
    assert [verdict.is_refusing for verdict in accepting([REFUSED, WARNED, PASSED], None)] == [True, False, False]
    other = acceptance(["growth"], "agreed", "aya")
    judged = accepting([REFUSED, WARNED], other)
    assert judged == [REFUSED, WARNED]
    assert acceptance_decisions(judged, other).is_empty()


@pytest.mark.parametrize("name", ["C1", "C4_provenance_preservation", "L3", "damage", "Shrinkage", ""])
def test_only_gates_can_be_accepted(name: str) -> None:
    with pytest.raises(AcceptanceInvalid, match="C1 to C6") as raised:
        acceptance([name], "agreed", "aya")
    assert all(gate in raised.value.message for gate in GATES)


@pytest.mark.parametrize(("gates", "why"), [(["growth"], None), (["growth"], "  "), ([], "agreed")])
def test_a_gate_needs_a_reason_and_a_reason_a_gate(gates: list[str], why: str | None) -> None:
    with pytest.raises(AcceptanceInvalid, match="--why"):
        acceptance(gates, why, "aya")


def test_nothing_given_accepts_nothing() -> None:
    assert acceptance([], None, "aya") is None
