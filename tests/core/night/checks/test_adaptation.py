"""Condition C6 detects a graph in which accesses had no effect, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import ACCESSES, DECISION
from memstate_core.night.checks.adaptation import not_raised
from memstate_core.state.graph import TOPIC, open_graph
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of, tables
from tests.core.strategies import BUFFER_MIB, accessed, day, evidence_frame, fill, folded, observation

pytestmark = pytest.mark.slow

STREAM = [observation(number, topic_id=name) for number, name in enumerate(("used", "idle", "failed"))]
OLD_USE = {"topic_id": "used", "at": 1}
NEW_ACCESSES: list[dict[str, Any]] = [
    {"topic_id": "used", "at": 5},
    {"topic_id": "failed", "at": 5},
    {"topic_id": "failed", "at": 6, "failed": True},
]


class Night:
    """The graph of a base, and that of a night (day 10) with more accesses, which a test may tamper with."""

    def __init__(self, folder: Path, *new: dict[str, Any]) -> None:
        self.graph, self.base = folder / "graph", folder / "base"
        self.every, self.now = accessed(OLD_USE, *new), day(10)
        self.new, self.decisions = self.every[1:], empty(DECISION)
        for path, accesses in ((self.base, accessed(OLD_USE)), (self.graph, self.every)):
            with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
                fill(graph, folded(STREAM, accesses=accesses))

    def tamper(self, topic: str, **values: Any) -> None:
        with open_graph(self.graph, buffer_mib=BUFFER_MIB) as graph:
            graph.update(TOPIC, pl.DataFrame([{"id": topic, **values}]))

    def violations(self) -> list[str]:
        checked = checked_state_of(
            self.graph,
            evidence_frame(STREAM),
            empty(DECISION),
            self.decisions,
            now=self.now,
            accesses=self.every,
            fresh=self.new,
        )
        return not_raised(checked, tables(self.base))["topic_id"].sort().to_list()


def moved(night: Night, was: str) -> None:
    row = {"kind": "moved", "topic_id": "idle", "payload_json": json.dumps({"was": was})}
    night.decisions = filled(pl.DataFrame([row]), DECISION)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path, *NEW_ACCESSES)


def test_a_night_that_counted_its_accesses_passes(night: Night) -> None:
    assert night.violations() == []


@pytest.mark.parametrize("damage", [{"strength": 0.9}, {"half_life_days": 5.0}, {"reinforced_at": day(-40)}])
def test_a_used_topic_that_is_less_salient_than_without_is_found(night: Night, damage: dict[str, Any]) -> None:
    night.tamper("used", **damage)
    assert night.violations() == ["used"]


def test_a_used_topic_that_is_just_as_salient_as_without_is_found(night: Night) -> None:
    with open_graph(night.base, read_only=True, buffer_mib=BUFFER_MIB) as base:
        (row,) = base.read(TOPIC, ["strength", "reinforced_at", "half_life_days"], "r.id = 'used'").to_dicts()
    night.tamper("used", **row)
    assert night.violations() == ["used"]


def test_topics_that_nobody_used_are_not_asked(night: Night) -> None:
    night.tamper("idle", strength=0.01)
    assert night.violations() == []


def test_a_topic_that_failed_somebody_may_fade_faster(night: Night) -> None:
    night.tamper("failed", strength=0.01)
    assert night.violations() == []


def test_a_topic_that_lost_evidence_may_fade(night: Night) -> None:
    night.tamper("used", strength=0.01)
    assert night.violations() == ["used"]
    moved(night, "used")
    assert night.violations() == []


def test_levels_are_distinct_however_far_they_have_decayed(tmp_path: Path) -> None:
    """After years the rounded salience of either is 0."""
    night = Night(tmp_path, {"topic_id": "used", "at": 5})
    night.now = day(200_000)
    assert night.violations() == []
    with open_graph(night.base, read_only=True, buffer_mib=BUFFER_MIB) as base:
        before = base.read(TOPIC, ["strength", "half_life_days"], "r.id = 'used'").row(0, named=True)
    night.tamper(
        "used", reinforced_at=day(1), half_life_days=before["half_life_days"], strength=before["strength"] * 0.99
    )
    assert night.violations() == ["used"]


def test_without_accesses_nothing_is_required(night: Night) -> None:
    night.new = pl.DataFrame(schema=ACCESSES)
    night.tamper("used", strength=0.01)
    assert night.violations() == []


def test_new_topics_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    night = Night(tmp_path, {"topic_id": "used", "at": 5}, {"topic_id": "nobody", "at": 5})
    with open_graph(night.base, buffer_mib=BUFFER_MIB) as base:
        base.delete(TOPIC, pl.DataFrame({"id": ["used"]}))
    assert night.violations() == []
