"""Undo of a run on a real store (L4): the state is that of a history without its decisions, also later."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.errors import CheckRefused, RunUnknown
from memstate_core.model.ids import key_id
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night import corrections as corrected
from memstate_core.night.corrections import correct
from memstate_core.night.verify import verify
from memstate_core.revise.undo_run import RunUndo, undo_run
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import REVIEW_ENDED
from tests.core.frames import filled
from tests.core.night import corrections
from tests.core.night.corrections import (
    ACME,
    BOAT,
    CAT,
    LATER,
    SCOPE,
    decide,
    exported,
    homes,
    shard,
    state_hash,
    undo,
    without_marks,
)
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record
from tests.core.strategies import day

pytestmark = pytest.mark.slow

first_night = corrections.first_night
BAD = "bad-night"
DOG = pl.select(key_id(pl.lit(SCOPE), pl.lit("dog"))).item()


def step(kind: str, topic: str, **payload: Any) -> dict[str, Any]:
    said = json.dumps({"actor": "person", **payload})
    return {"kind": kind, "scope": SCOPE, "topic_id": topic, "payload_json": said}


def bad_night(store: Store) -> None:
    """A run that archives one topic, detaches fields and an edge of others, and merges two of them."""
    edge = {"to": BOAT, "kind": "part_of"}
    rows = [
        step("archived", DOG),
        step("detached", ACME, fields=["owner"]),
        step("detached", CAT, fields=["brand"]),
        step("detached", CAT, edges=[edge]),
        step("summarised", BOAT, fields=["owner"], keep=1),
    ]
    correct(store, "s0", BAD, day(2), filled(pl.DataFrame(rows), DECISION), "a bad night")
    correct(store, "s0", BAD, day(2), verdict_decisions(shard(store), [(ACME, BOAT, "same")]), "a bad night")


@pytest.fixture
def store(first_night: Path, tmp_path: Path) -> Store:
    made = open_store(shutil.copytree(first_night, tmp_path / "home"), {})
    record(made, {"cat": {"fields": [{"name": "brand", "value": "Purr"}]}, "dog": {"title": "Dog lead"}}, 1)
    for place, name in enumerate(("Bo", "Bea", "Bill")):
        record(made, {"boat": {"fields": [{"name": "owner", "value": name}]}}, 10 + place)
    night(made, 2)
    return made


def undone(store: Store, run_id: str, at: float) -> RunUndo:
    """Undoes a run in the only shard, and publishes if anything is left to undo."""
    found = undo_run(read_served(store), run_id)["s0"]
    if found.decisions.height:
        decide(store, found.decisions, at)
    return found


def test_undoing_a_run_gives_the_store_without_it_also_after_a_later_night(store: Store, tmp_path: Path) -> None:
    never = open_store(shutil.copytree(store.home.root, tmp_path / "never"), {})
    bad_night(store)
    for either in (store, never):
        record(either, LATER, 3)
        night(either, 4)
    assert state_hash(store) != state_hash(never)
    found = undone(store, BAD, 4)
    # The night attached one of the fields itself.
    assert found.undone == {"archived": 1, "detached": 2, "merged": 1, "summarised": 1}
    assert found.left == {"detached": 1, "judged": 1}
    assert state_hash(store) == state_hash(never)
    assert without_marks(exported(store)) == without_marks(exported(never))
    assert all(verdict.passed for verdict in verify(store, shard(store).snapshot))
    number = shard(store).snapshot.manifest.number
    again = undone(store, BAD, 4)
    assert (again.undone, again.left) == ({}, found.undone | {"detached": 3, "judged": 1})
    assert shard(store).snapshot.manifest.number == number


def test_what_another_run_decided_too_or_reversed_stays(store: Store) -> None:
    bad_night(store)
    undo(store, BOAT, 3)
    decide(store, filled(pl.DataFrame([step("archived", DOG)]), DECISION), 3)
    row = filled(pl.DataFrame([step("detached", ACME, fields=["owner"])]), DECISION)
    decide(store, row, 3)
    found = undone(store, BAD, 4)
    assert found.undone == {"detached": 2, "summarised": 1}
    assert found.left == {"archived": 1, "detached": 1, "judged": 1, "merged": 1}
    assert shard(store).topics.filter(pl.col("state") == "archived")["id"].to_list() == [DOG]
    assert homes(store)["boat"] == BOAT


def test_fields_restored_without_a_review_of_their_dependents_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cat is part of the boat: it depends on the boat's fields."""
    rows = filled(pl.DataFrame([step("detached", BOAT, fields=["owner"])]), DECISION)
    decide(store, rows, 2)
    decide(store, filled(pl.DataFrame([step(REVIEW_ENDED, CAT)]), DECISION), 2)
    assert CAT not in shard(store).reviews["topic_id"]
    back = filled(pl.DataFrame([step("attached", BOAT, fields=["owner"])]), DECISION)
    with monkeypatch.context() as patch:
        patch.setattr(corrected, "queue_reviews", lambda *_: StepResult(pl.DataFrame(), {}))
        with pytest.raises(CheckRefused, match="C3"):
            decide(store, back, 3)
    decide(store, back, 3)
    assert CAT in shard(store).reviews["topic_id"]


def test_an_unknown_run_is_refused(store: Store) -> None:
    with pytest.raises(RunUnknown, match="no decision of a run 'nobody'"):
        undo_run(read_served(store), "nobody")
