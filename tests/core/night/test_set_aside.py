"""Evidence with which a run fails is found and set aside, and the nights go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.errors import EvidenceSetAside, StoreLocked
from memstate_core.night import placements, replay
from memstate_core.night import set_aside as subject
from memstate_core.night.clone import cloned
from memstate_core.run.begin import begin_run
from memstate_core.run.run import deaths_path, died_in
from memstate_core.run.store import Store, open_store
from memstate_core.run.view import shard_evidence
from memstate_core.state.fold.decisions import SET_ASIDE
from tests.core.strategies import day, evidence_frame, observation

pytestmark = pytest.mark.slow

POISON = "poison"


def stream(*numbers: int, poisoned: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return [
        observation(n, topic_key=f"key-{n}", title=f"Topic {n}", summary=POISON if n in poisoned else "plain")
        for n in numbers
    ]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(tmp_path / "home", {})
    store.ledger.root.mkdir(parents=True)
    store.ledger.append("evidence", evidence_frame(stream(*range(12), poisoned=(3, 7))), "test")
    return store


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placement fails on any evidence with a poisoned summary."""
    place_named = placements.place_named

    def fail(evidence: pl.DataFrame, *rest: Any, **how: Any) -> Any:
        if (evidence["summary"] == POISON).any():
            raise ValueError("cannot digest this")
        return place_named(evidence, *rest, **how)

    monkeypatch.setattr(placements, "place_named", fail)


# A run


@pytest.mark.usefixtures("failing")
def test_guilty_evidence_is_left_out_of_the_next_run_and_named_in_the_quarantine(store: Store) -> None:
    run = begin_run(store, "s0", "first", day(10))
    with pytest.raises(EvidenceSetAside, match="2 pieces of evidence, first e03: ValueError: cannot digest this"):  # noqa: SIM117
        with subject.contained(store, run, "placements"):
            placements.place(store, run, shard_evidence(store.ledger, run, ["evidence_id"]))
    with cloned(store) as clone:
        planned = begin_run(clone, "s0", "planned", day(10)).decisions(SET_ASIDE)
    assert planned["evidence_ids"].to_list() == [["e03"], ["e07"]]
    again = begin_run(store, "s0", "second", day(10))
    kept = shard_evidence(store.ledger, again, ["evidence_id"])
    assert sorted(set(evidence_frame(stream(*range(12)))["evidence_id"]) - set(kept["evidence_id"])) == ["e03", "e07"]
    assert placements.place(store, again, kept).frame.height == 10
    refused = store.ledger.scan("quarantine").collect()
    assert refused["reason"].to_list() == ["set_aside", "set_aside"]
    assert "step placements failed with it: ValueError: cannot digest this" in refused["detail"][0]
    assert not (store.home.root / "work" / "s0.replay").exists()


def test_a_failure_that_no_evidence_causes_is_raised_as_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin_run(store, "s0", "first", day(10))
    monkeypatch.setattr(placements, "place_named", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError), subject.contained(store, run, "placements"):
        placements.place(store, run, shard_evidence(store.ledger, run, ["evidence_id"]))
    assert not run.pending.exists()


@pytest.mark.parametrize("error", [StoreLocked("run.lock", "another"), OSError("no space"), KeyboardInterrupt()])
def test_errors_of_our_own_of_the_system_and_interruptions_are_not_searched(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    run = begin_run(store, "s0", "first", day(10))
    monkeypatch.setattr(replay, "replay", lambda *_: pytest.fail("replayed"))
    with pytest.raises(type(error)), subject.contained(store, run, "placements"):
        raise error


# Deaths


def test_one_death_is_no_reason_to_search_and_two_in_the_same_step_are(store: Store) -> None:
    scratch = store.home.work("s0")
    for expected in (["topics"], ["topics", "topics"]):
        begin_run(store, "s0", "run", day(10)).enter("topics")
        assert died_in(scratch) == expected
    run = begin_run(store, "s0", "run", day(10))
    assert not subject.set_aside_after_deaths(store, run, ["topics"])
    assert not subject.set_aside_after_deaths(store, run, ["merges", "topics"])
    run.end()
    assert died_in(scratch) == []


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"PAR1" + bytes(40) + b"PAR1"])
def test_damaged_notes_of_earlier_runs_stop_no_run(store: Store, garbage: bytes) -> None:
    run = begin_run(store, "s0", "first", day(10))
    subject._keep(store, run, pl.Series(["e03"]), "step topics failed with it")
    run.pending.write_bytes(garbage)
    run.enter("topics")
    died_in(run.scratch)
    deaths_path(run.scratch).write_bytes(b"\xff\xfe")
    run.enter("topics")
    (run.scratch / "step").write_bytes(b"\xff")
    deaths = died_in(run.scratch)
    again = begin_run(store, "s0", "second", day(10))
    assert not subject.set_aside_after_deaths(store, again, [*deaths, deaths[-1]])
    assert again.pending.with_name(f"{again.pending.name}.damaged").read_bytes() == garbage
    assert shard_evidence(store.ledger, again, ["evidence_id"]).height == 12


_ABORTS = """
import os
from memstate_core.night import placements

place_named = placements.place_named

def fail(evidence, *rest, **how):
    if (evidence["summary"] == "poison").any():
        os.abort()
    return place_named(evidence, *rest, **how)

placements.place_named = fail
"""


def test_evidence_that_kills_the_process_is_found_in_processes_of_their_own(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_ABORTS)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", ""), str(Path.cwd())])
    )
    run = begin_run(store, "s0", "third", day(10))
    assert subject.set_aside_after_deaths(store, run, ["placements", "placements"])
    kept = shard_evidence(store.ledger, begin_run(store, "s0", "fourth", day(10)), ["evidence_id"])
    assert kept.height == 10


# Memory


_BUDGET = """
import sys
from pathlib import Path

import numpy as np
from memstate_core.state.graph import open_graph
from memstate_core.state.process.memory import memory_budget

with memory_budget(200):
    with open_graph(Path(sys.argv[1]), buffer_mib=512):
        assert np.ones(5 << 20).sum()
    try:
        np.ones(60 << 20)
    except MemoryError:
        print("refused")
assert np.ones(60 << 20).sum()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is one of Linux")
def test_a_budget_limits_what_is_allocated_but_not_the_space_that_the_graph_reserves(tmp_path: Path) -> None:
    """In a process of its own: a graph that an earlier test opened gives its reserved space back at any moment."""
    ran = subprocess.run(
        [sys.executable, "-c", _BUDGET, str(tmp_path / "graph.kuzu")], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "refused"), ran.stderr
