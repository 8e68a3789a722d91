"""Progress of the nightly run: every step reports its start, and long phases are logged with rate and time left."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.progress import Progress, progress_to
from memstate_core.run.store import open_store
from memstate_pipeline import progress, run
from memstate_pipeline.cli.maintain import STEPS
from memstate_pipeline.instance import dagster_instance


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_long_phase_is_logged_now_and_then_with_its_rate_and_the_time_left() -> None:
    clock, lines = Clock(), list[str]()
    log = progress.ProgressLog(lines.append, clock)
    for second in range(31):
        clock.now = 100 + second
        log(Progress("encode", 100 * second, 10_000, "texts"))
    assert lines == [
        "encode: 1,000 of 10,000 texts, 100 a second, 1 min 30 s left",
        "encode: 2,000 of 10,000 texts, 100 a second, 1 min 20 s left",
        "encode: 3,000 of 10,000 texts, 100 a second, 1 min 10 s left",
    ]


def test_short_phases_are_not_logged_and_each_phase_has_its_own_rate() -> None:
    clock, lines = Clock(), list[str]()
    log = progress.ProgressLog(lines.append, clock)
    for at in range(20):  # twenty phases of a second each
        log(Progress(f"phase {at}", 0, 2, "units"))
        clock.now += 1
        log(Progress(f"phase {at}", 2, 2, "units"))
    assert lines == []
    log(Progress("slow", 0, 7200, "units"))
    clock.now += 12
    log(Progress("slow", 6, 7200, "units"))
    assert lines == ["slow: 6 of 7,200 units, 0.5 a second, 3 h 59 min left"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_night_reports_all_its_steps_and_logs_phases_in_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    store = open_store(tmp_path / "home")
    store.home.inbox.mkdir(parents=True)
    rows = [{"text": f"Turn {at} of a chat about gardens and rain", "session_id": "s", "turn": at} for at in range(5)]
    (store.home.inbox / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen: list[Progress] = []
    with progress_to(seen.append):
        done = run.maintain(store, datetime(2026, 4, 6, 2, tzinfo=UTC))
    steps = [step.phase for step in seen if step.unit == progress.STEPS]
    assert len(steps) == len(set(steps)) == STEPS
    assert (steps[0], steps[-1]) == ("evidence", "maintenance_report")
    phases = {step.phase for step in seen if step.done == step.total}
    assert {"encode", f"import {store.home.inbox / 'a.jsonl'}"} <= phases
    with dagster_instance(store.home) as instance:
        logged = instance.all_logs(done.summary["run_id"], of_type=None)
        messages = [entry.user_message for entry in logged if not entry.is_dagster_event]
    assert any(message.startswith("encode: 5 of 5 texts") for message in messages), messages
    assert isinstance(logged[0], dg.EventLogEntry)
