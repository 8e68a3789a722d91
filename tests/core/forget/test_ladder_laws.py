"""Laws L3 and L4 for every step of the ladder: it follows from the ledger, and undoing it leaves no trace."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS
from memstate_core.night.verify import verify
from memstate_core.policy.settings import Override
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.export import export_records
from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.merge import merge_duplicates
from tests.core.forget.lives import AYA, Life, begun, owner, topic_id
from tests.core.frames import filled

pytestmark = pytest.mark.slow

EDGE = {"to": topic_id("acme"), "kind": "mentions"}
STEPS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "archived": ("archived", "restored", "acme", {"salience": 0.01, "by": "threshold"}),
    "a field detached": ("detached", "attached", "acme", {"fields": ["owner"]}),
    "an edge detached": ("detached", "attached", "boat", {"edges": [EDGE]}),
    "summarised": ("summarised", "expanded", "acme", {"fields": ["owner"], "keep": 2}),
    "pinned": ("pinned", "unpinned", "acme", {}),
}


def decision(kind: str, key: str, said: dict[str, Any]) -> pl.DataFrame:
    row = {
        "kind": kind,
        "scope": AYA,
        "topic_id": topic_id(key),
        "payload_json": json.dumps({**said, "actor": "person"}),
    }
    return filled(pl.DataFrame([row]), DECISION)


def exported(life: Life) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        records = list(export_records([stack.enter_context(SnapshotReader(life.served().snapshot))]))
    return [{name: value for name, value in row.items() if name not in ("stale", "warnings")} for row in records]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_reversed_step_gives_the_state_of_a_store_that_never_took_it(
    step: tuple[str, str, str, dict[str, Any]], young: Life, tmp_path: Path
) -> None:
    down, up, key, said = step
    never, before = young.state_hash(), exported(young)
    assert young.decides(decision(down, key, said), 0.5) != never
    assert young.rebuilt(tmp_path / "down") == young.state_hash()
    assert young.decides(decision(up, key, said), 0.5) == never
    assert young.rebuilt(tmp_path / "up") == never
    assert exported(young) == before


def test_undoing_all_that_a_night_forgot_gives_the_state_of_a_store_that_forgets_nothing(tmp_path: Path) -> None:
    life, never = begun(tmp_path / "life"), begun(tmp_path / "never", topic_count_soft_limit=100)
    never.under(topic_count_soft_limit=100, summary_keep_revisions=100)
    assert len(life.night(10)) == 3
    assert never.night(10) == {}
    for key in ("acme", "boat", "cat"):
        life.undoes(key, 10)
    assert life.state_hash() == never.state_hash()
    assert exported(life) == exported(never)


def test_everything_at_once_folds_again_to_the_same_state_and_verifies(young: Life, tmp_path: Path) -> None:
    """Accesses, failures, a pin, a merge, and the ladder's steps in between."""
    young.accesses(0.6, "acme", fields=["owner"])
    young.accesses(0.6, "boat", failed=True)
    young.accesses(0.6, "no-body")
    young.pins("cat", 0.6)
    young.night(10)
    young.accesses(10.5, "boat")
    young.night(11)
    young.merges("boat", "cat", 11)
    young.accesses(12, "cat", "boat")
    young.night(12)
    assert young.rebuilt(tmp_path / "fold") == young.state_hash()
    assert [verdict.name for verdict in verify(young.store, young.served().snapshot) if not verdict.passed] == []


def test_nights_in_between_do_not_show_in_the_salience(tmp_path: Path) -> None:
    calm: dict[str, Any] = {"topic_count_soft_limit": 100, "summary_keep_revisions": 100}
    often, once = begun(tmp_path / "often"), begun(tmp_path / "once")
    for life, nights in ((often, (0.5, 1.2, 2, 4)), (once, (4,))):
        life.under(**calm)
        life.accesses(0.6, "acme")
        life.accesses(1.1, "boat", failed=True)
        for at in nights:
            life.night(at)
    assert often.state_hash() == once.state_hash()


# An access never stops a night


def test_an_access_dated_ahead_of_the_run_does_not_refuse_it(tmp_path: Path) -> None:
    """A clock that is ahead, or a run with an earlier logical time."""
    life = begun(tmp_path, salience_half_life_days=90.0)
    life.accesses(0.5, *["acme"] * 60)
    life.night(1)
    life.accesses(21, "acme")
    life.night(1.5)


def test_a_change_of_kind_with_an_access_does_not_refuse_a_night(tmp_path: Path) -> None:
    brief = Override(topic_kind="chat", salience_half_life_days=1.0)
    life = begun(tmp_path, salience_half_life_days=90.0, overrides=(brief,))
    life.night(5)
    life.says(6, {"cat": {"title": "Cat food", "topic_kind": "chat"}})
    life.accesses(6, "cat")
    life.night(20)


def test_a_merge_with_a_topic_that_failed_with_an_access_does_not_refuse_a_night(tmp_path: Path) -> None:
    life = Life(tmp_path, salience_half_life_days=90.0)
    life.says(0, {"acme": owner("Aya")})
    life.says(1, {"boat": owner("Aya", title="Boat", observation_id="boat", placement="new_topic")})
    boat = uuid_text("observation", AYA, "boat")
    life.accesses(2, *[boat] * 8, failed=True)
    life.night(10)
    life.accesses(11, "acme")
    run, new = life.begun(60)
    a, b = sorted((topic_id("acme"), boat))
    pair = {"a": a, "b": b, "scope": AYA, "probability": 0.99, "weight": 4.0, "band": "merge"}
    merged = merge_duplicates(life.store, run, filled(pl.DataFrame([pair]), PAIRS))
    run.keep("merges", merged, 0.0)
    queue_reviews(run, merged.frame)
    update_salience(run)
    run.keep("forgetting", forget(life.store, run, new), 0.0)
    life.ended(run)
