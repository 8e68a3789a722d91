"""Answers stay what they were: ids, order and texts to the byte, scores but for the last digits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from memstate_core.retrieve.reader import SnapshotReader
from tests.core.retrieve.recorded_answers import RECORDED, answers, made_store


def alike(one: Any, other: Any) -> Any:
    """The other value with every number that is near enough replaced by the first's."""
    if isinstance(one, float) and isinstance(other, float):
        return one if other == pytest.approx(one, abs=2e-6, rel=1e-6) else other
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: alike(one.get(key), value) for key, value in other.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [alike(*pair) for pair in zip(one, other, strict=True)]
    return other


@pytest.mark.slow
def test_answers_are_those_that_were_recorded(tmp_path: Path) -> None:
    recorded, store = json.loads(gzip.decompress(RECORDED.read_bytes())), made_store()
    with SnapshotReader(store.publish(tmp_path / "snapshots" / "s0" / "3")) as reader:
        found = answers([reader], store)
    assert len(found) == len(recorded)
    for then, now in zip(recorded, found, strict=True):
        assert json.dumps(alike(then, now)) == json.dumps(then)


def test_the_recorded_answers_show_what_may_go_wrong() -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    candidates = [each for answer in recorded for each in answer["candidates"]]
    kinds = {warning["kind"] for each in candidates for warning in each["warnings"]}
    assert kinds == {"dangling_reference", "conflict", "stale"}
    assert any(field["conflict"] for each in candidates for field in each["fields"])
    assert any(field["history"] for each in candidates for field in each["fields"])
    assert {each["state"] for each in candidates} == {"active", "archived"}
    assert any(each["explain"]["parts"]["structure"] for each in candidates if "explain" in each)
    assert any("replaced_by" in each for answer in recorded for each in answer["evidence"])
    assert max(len(each["neighbors"]) for each in candidates) > 4
