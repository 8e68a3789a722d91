"""Accesses with which a run fails are found and set aside like evidence, and can be readmitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.model.errors import EvidenceSetAside
from memstate_core.night.placements import place
from memstate_core.night.rebuild import rebuild
from memstate_core.night.set_aside import contained
from memstate_core.night.verify import verify_store
from memstate_core.run import apply
from memstate_core.run.begin import begin_run, new_evidence
from memstate_core.run.view import shard_accesses
from memstate_core.state.current import current_snapshot
from memstate_core.state.fold.decisions import SET_ASIDE
from tests.core.failing_folds import break_folds
from tests.core.forget.lives import Life, owner
from tests.core.night.corrections import undo
from tests.core.revise.nights import topics
from tests.core.strategies import day

pytestmark = pytest.mark.slow

POISON = "poison"
KEYS = ("gate", "yard", "pond")


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path)
    life.says(1, {key: owner("Ines", title=f"The {key}") for key in KEYS})
    return life


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A fold that fails on any access of a field of this name, once `failing` is asked to."""
    break_folds(monkeypatch, lambda *given: has_poison(given[4]), OverflowError("a value too large for this machine"))
    return monkeypatch


def has_poison(accesses: pl.DataFrame) -> bool:
    return bool(accesses["fields"].list.contains(POISON).any())


def fails(life: Life, at: float) -> EvidenceSetAside:
    """The end of a run whose `topics` step fails."""
    run = begin_run(life.store, "s0", f"failed-{at}", day(at))
    new = new_evidence(life.store, run).frame
    run.keep("placements", place(life.store, run, new), 0.0)
    with pytest.raises(EvidenceSetAside) as failed, contained(life.store, run, "topics"):
        apply.update_topics(life.store, run)
    return failed.value


def state_hash(life: Life) -> str:
    served = current_snapshot(life.home, "s0")
    assert served is not None
    return served.manifest.state_hash


def collected(life: Life, at: float) -> None:
    """Collects the waiting accesses, without a night."""
    collect_accesses(life.home, life.store.ledger, life.store.settings, day(at), f"collection-{at}")


def test_accesses_that_break_a_step_are_left_out_of_the_next_night_and_listed(
    life: Life, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    life.night(2)
    life.accesses(3, "gate", "yard", "pond")
    life.accesses(3, "gate", "pond", fields=[POISON])
    collected(life, 4)
    request.getfixturevalue("failing")
    error = fails(life, 4)
    assert (len(error.facts["access_ids"]), error.facts["evidence_ids"]) == (2, [])
    assert "2 accesses, first" in error.message
    life.night(4)
    assert state_hash(life) == rebuild(life.store, "s0", "again").state_hash
    assert all(verdict.passed for verdicts in verify_store(life.store).values() for verdict in verdicts)

    refused = life.store.ledger.scan("quarantine").sort("quarantine_id").collect()
    assert set(refused["reason"]) == {"set_aside"}
    assert refused.height == 2
    assert all(json.loads(raw)["fields"] == [POISON] for raw in refused["raw"])
    problem = "step topics failed with it: OverflowError: a value too large for this machine"
    assert all(detail.startswith("access ") and problem in detail for detail in refused["detail"])
    decided = life.store.ledger.scan("transitions").filter(pl.col("kind") == SET_ASIDE).collect()
    assert decided["evidence_ids"].explode().sort().to_list() == sorted(error.facts["access_ids"])

    monkeypatch.undo()
    run = begin_run(life.store, "s0", "look", day(5))
    assert shard_accesses(life.store.ledger, run).height == 3
    run.end()
    undo(life.store, error.facts["access_ids"][0], 5)
    run = begin_run(life.store, "s0", "look", day(6))
    assert shard_accesses(life.store.ledger, run).height == 4
    run.end()
    life.night(6)


def test_an_access_that_broke_nothing_at_first_is_found_and_its_topic_may_lose_salience(
    life: Life, request: pytest.FixtureRequest
) -> None:
    """The night that leaves it out passes C6 although the topic was accessed again."""
    life.night(2)
    for _ in range(6):
        life.accesses(3, "gate", fields=[POISON])
    life.night(4)
    life.says(4.5, {"pond": owner("Tess")})
    life.accesses(4.6, "gate")
    collected(life, 5)
    request.getfixturevalue("failing")
    error = fails(life, 5)
    assert len(error.facts["access_ids"]) == 6
    life.night(5)
    assert all(verdict.passed for verdicts in verify_store(life.store).values() for verdict in verdicts)


def test_evidence_and_accesses_that_each_break_a_step_are_found_together(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.accesses(1.5, "gate", "yard")
    life.accesses(1.5, "yard", fields=[POISON])
    life.says(1, {"shed": owner("Ines", title="The shed", summary=POISON)})
    collected(life, 2)

    def is_broken(*given: Any) -> bool:
        return has_poison(given[4]) or bool((given[0]["summary"] == POISON).any())

    break_folds(monkeypatch, is_broken, OverflowError("a value too large for this machine"))
    error = fails(life, 2)
    assert [len(error.facts[name]) for name in ("evidence_ids", "access_ids")] == [1, 1]
    assert "1 pieces of evidence" in error.message
    life.night(2)
    assert sorted(topics(life.store)["title"]) == sorted(f"The {key}" for key in KEYS)
