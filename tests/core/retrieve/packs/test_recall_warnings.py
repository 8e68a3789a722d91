"""Warnings about packed items: each kind, its sides, its id."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from memstate_core.retrieve.packs.recall_warnings import (
    SEVERITIES,
    Grounds,
    PackedItem,
    Workspace,
    recall_warnings,
    verification_warnings,
    warning_id,
)

A, B = PackedItem("a"), PackedItem("b")


def record(check: str, message: str, status: str = "failed", topic: str = "a") -> dict[str, Any]:
    return {"topic_id": topic, "check": check, "target": "observation:o", "status": status, "message": message}


def note(**given: str) -> dict[str, Any]:
    return {"topic_id": "a", "observation_id": "o", "workspace": None, "branch": None, "commit": None} | given


def kinds(grounds: Grounds, *items: PackedItem, workspace: Workspace | None = None) -> list[tuple[str, str]]:
    return [(each["kind"], each["target"]) for each in recall_warnings(items or (A,), grounds, workspace)]


def edge(kind: str) -> Grounds:
    return Grounds(relations=[{"kind": kind, "from_id": "a", "to_id": "b"}], titles={"a": "Old", "b": "New"})


def test_a_contradiction_concerns_either_side_that_is_packed():
    assert kinds(edge("contradicts"), B) == [("temporal_contradiction", "b")]
    assert kinds(edge("contradicts"), B, A) == [("temporal_contradiction", "b"), ("temporal_contradiction", "a")]


def test_a_supersession_concerns_the_superseded_side_alone():
    assert kinds(edge("supersedes"), A) == []
    assert kinds(edge("supersedes"), A, B) == [("temporal_supersession", "b")]


def test_other_relations_warn_of_nothing():
    assert kinds(edge("extends"), A, B) == []


def test_a_value_without_evidence_or_with_a_lost_source_lacks_its_citation():
    assert kinds(Grounds(), PackedItem("a", ())) == [("citation_missing", "a")]
    assert kinds(Grounds(), PackedItem("a", ("e",))) == []
    assert kinds(Grounds(records=[record("citations", "cited and not in the ledger: x")])) == [
        ("citation_missing", "a")
    ]


@pytest.mark.parametrize(
    ("message", "kind"), [("file missing: /a", "file_missing"), ("file changed: /a", "file_hash_mismatch")]
)
def test_a_file_that_is_gone_or_changed_is_warned_of(message, kind):
    assert kinds(Grounds(records=[record("file", message)])) == [(kind, "a")]
    assert kinds(Grounds(records=[record("file", message, "passed")])) == []
    assert kinds(Grounds(records=[record("file", message, topic="c")])) == []


def test_drift_is_a_branch_or_commit_other_than_that_of_the_workspace():
    grounds = Grounds(notes=[note(workspace="/w/", branch="main", commit="abcdef12")])
    assert kinds(grounds) == []
    assert kinds(grounds, workspace=Workspace("/w", "main", "ABCDEF")) == []
    drifted = kinds(grounds, workspace=Workspace("/w", "dev", "123456"))
    assert drifted == [("branch_drift", "a"), ("commit_drift", "a")]
    assert kinds(grounds, workspace=Workspace("/other", "dev", "123456")) == []


def test_drift_of_many_observations_is_one_warning():
    notes = [note(branch="main") | {"observation_id": name} for name in ("o2", "o1")]
    [found] = recall_warnings([A], Grounds(notes=notes), Workspace(branch="dev"))
    assert found["related_ids"] == ["o1", "o2"]


def test_the_id_is_the_beginning_of_the_hash_of_its_parts():
    [found] = recall_warnings([B], edge("supersedes"))
    parts = ("temporal_supersession", "b", "superseded by Old", "a")
    assert (
        found["id"] == hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16] == warning_id(*parts[:3], parts[3:])
    )
    assert found["severity"] == "warning"
    assert set(SEVERITIES.values()) == {"info", "warning"}


def test_equal_warnings_appear_once_in_the_order_of_the_items():
    found = recall_warnings([B, A, B, PackedItem("a", ()), PackedItem("a", ())], edge("contradicts"))
    assert [(each["target"], each["kind"]) for each in found] == [
        ("b", "temporal_contradiction"),
        ("a", "citation_missing"),
        ("a", "temporal_contradiction"),
    ]


def test_records_that_passed_warn_of_nothing():
    rows = [record("file", "x", status) for status in ("passed", "stale", "unknown", "warning", "failed")]
    assert [each["status"] for each in verification_warnings([A], rows)] == ["stale", "unknown", "warning", "failed"]
    assert verification_warnings([B], rows) == []
