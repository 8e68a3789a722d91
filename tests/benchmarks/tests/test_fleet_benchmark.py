"""The model of a fleet: nothing is lost among shards, schedules are those of so many workers, and limits show."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "explanation" / "scale.md"


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


def test_the_page_names_every_input_with_its_value(script: Any) -> None:
    costs, asked = script.Costs(), script.options().get_default
    expected = {
        "scopes that change in a night": f"{asked('changed'):.0%}",
        "a night of a few rows, CPU s": f"{costs.fixed:.1f}",
        "each topic of the shard, CPU ms": f"{1000 * costs.topic:.2f}",
        "each topic of a scope that has a change, CPU ms": f"{1000 * costs.searched:.2f}",
        "memory of a night, KiB a topic": f"{costs.memory / 2**10:.0f}",
        "memory of a process without topics, GiB": f"{costs.memory_fixed / script.GIB:.1f}",
        "a snapshot, kB a topic; of it sent in a night": f"{costs.stored / 1000:.1f}; {costs.sent / 1000:.1f}",
        "requests of a night of a store at a URL": f"{costs.requests}",
        "rows in Dagster's event log, a night": f"{costs.events}",
        "scheduler and queue, CPU s a run": f"{costs.scheduled:.3f}",
        "the share of a night that holds the whole store": f"{costs.turn:.1f}",
        "a server opens 202,892 topics in, s": f"{202_892 * costs.opening:.0f}",
        "fetching from object storage, MB/s": f"{costs.fetching / 1e6:.0f}",
    }
    text = PAGE.read_text()
    table = text.split("| input | value | measured in |\n")[1].split("\n\n")[0].splitlines()[1:]
    found = {cells[0]: cells[1] for cells in (row.strip("| ").split(" | ") for row in table)}
    assert found == expected
    assert len(expected) == len(vars(costs)), "one row has two, and one is no cost"
    drawn = re.search(r"exponent\s+([\d.]+), mean of (\d+) topics", text)
    assert drawn is not None
    assert (float(drawn[1]), float(drawn[2])) == (script._TAIL, asked("topics_a_scope"))
    assert f"{asked('hours'):.0f} hours" in text
