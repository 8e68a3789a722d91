"""The model of a fleet: nothing is lost among shards, schedules are those of so many workers, and limits show."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    return import_module("fleet")


def test_scopes_are_drawn_once_and_changes_are_a_share_of_them(script: Any) -> None:
    fleet = script.drawn(20_000, 10.0, 8, 0.25, 1, seed=3)
    assert 150_000 < fleet.topics.sum() < 300_000
    assert np.all(fleet.searched < fleet.topics)
    assert 0.1 < fleet.searched.sum() / fleet.topics.sum() < 0.4
    same = script.drawn(20_000, 10.0, 8, 0.25, 1, seed=3)
    assert np.array_equal(fleet.topics, same.topics)


def test_workers_share_the_stores_and_a_store_has_one(script: Any) -> None:
    costs = script.Costs(fixed=1.0, topic=0.0, searched=1.0)
    fleet = script.Fleet(np.ones(6), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), 1)
    alone, three = script.night(fleet, costs, 1), script.night(fleet, costs, 3)
    assert (alone.cpu, alone.ends, alone.longest, alone.running) == (12.0, 12.0, 4.0, 1)
    assert (three.cpu, three.ends, three.running) == (12.0, 4.0, 3)
    assert script.night(fleet, costs, 3, idle=False).cpu == 9.0
    one = script.Fleet(fleet.topics, fleet.searched, 6)
    assert (script.night(one, costs, 3).ends, script.night(one, costs, 3).running) == (12.0, 1)
    assert script.needed(fleet, costs, 4.0) == 3
    assert script.needed(fleet, costs, 3.9) is None
    assert script.needed(one, costs, 12.0) == 1


def test_shards_at_once_share_a_store_but_for_their_turns(script: Any) -> None:
    costs = script.Costs(fixed=1.0, topic=0.0, searched=1.0, turn=0.25)
    one = script.Fleet(np.ones(6), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), 6, at_once=True)
    alone, three, six = (script.night(one, costs, workers) for workers in (1, 3, 6))
    assert (alone.ends, three.ends, three.running) == (12.0, 4.0, 3)
    assert (six.ends, six.longest) == (4.0, 4.0)
    slow = script.Costs(fixed=1.0, topic=0.0, searched=1.0, turn=0.5)
    assert (script.night(one, slow, 6).ends, script.needed(one, slow, 5.9)) == (6.0, None)


def test_the_table_says_where_no_number_of_workers_is_enough(script: Any) -> None:
    fleet = script.Fleet(np.full(100, 1e6), np.full(100, 1e5), 100)
    assert "none are enough" in script.report(fleet, script.Costs(), 8 * 3600.0)
    spread = script.Fleet(fleet.topics, fleet.searched, 1)
    assert "none are enough" not in script.report(spread, script.Costs(), 8 * 3600.0)
