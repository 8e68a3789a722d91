"""`memstate doctor` names nights that failed, runs whose process is gone, and a queue that nobody serves."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from memstate_core.model.text import parse_moment
from memstate_core.run.store import Store, open_store
from memstate_pipeline.dead_runs import STARTED_AND_SILENT
from memstate_pipeline.doctor.examine import examine
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.doctor.runs import PATIENCE, run_findings
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.run import maintain
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate
from tests.pipeline.test_dead_runs import killed_run

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    dump = tmp_path / "one.jsonl"
    dump.write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    assert run_memstate(tmp_path / "home", "import", str(dump)).code == 0
    return open_store(tmp_path / "home", {})


def after(age: timedelta) -> datetime:
    return datetime.now(UTC) + age


def found(store: Store, name: str, now: datetime) -> Finding:
    (finding,) = [each for each in run_findings(store, now) if each.name == name]
    return finding


def test_a_night_that_failed_is_named_with_its_reason_until_the_next_one(store: Store) -> None:
    assert found(store, "runs", after(timedelta())) == Finding("runs", True, "none yet")
    store.home.work("s0").parent.mkdir(parents=True, exist_ok=True)
    store.home.work("s0").write_text("a file where the run's folder is expected")
    failed = run_memstate(store.home.root, "maintain", "--now", NIGHT)
    assert failed.code == 1
    finding = found(store, "runs", after(timedelta()))
    assert not finding.ok
    assert finding.detail.startswith("the last night of s0, run ")
    assert finding.detail.endswith("; `memstate maintain` runs it again")
    assert "failed: " in finding.detail
    store.home.work("s0").unlink()
    maintain(store, parse_moment(NIGHT))
    assert found(store, "runs", after(timedelta())) == Finding("runs", True, "last nights: s0 success")


def test_a_plan_that_no_longer_fits_is_no_night_that_failed(store: Store, tmp_path: Path) -> None:
    home, plan = store.home.root, str(tmp_path / "plan.json")
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    assert run_memstate(home, "plan", "--now", "2026-04-07T02:00:00Z", "--output", plan).code == 0
    (tmp_path / "more.jsonl").write_text('{"title": "Boat", "observed_at": "2026-01-01"}\n')
    assert run_memstate(home, "import", str(tmp_path / "more.jsonl")).code == 0
    assert run_memstate(home, "apply", plan, "--json").document["error"]["type"] == "PlanStale"
    assert found(store, "runs", after(timedelta())) == Finding("runs", True, "last nights: s0 success")
    assert run_memstate(home, "status", "--json").document["last_failure"] is None


def test_a_run_whose_process_is_gone_is_ended_and_named(store: Store) -> None:
    run_id = killed_run(store.home)
    finding = found(store, "runs", after(STARTED_AND_SILENT + timedelta(seconds=5)))
    assert not finding.ok
    assert f"marked as failed, since their processes are gone: {run_id}" in finding.detail
    with dagster_instance(store.home) as instance:
        assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.FAILURE]


def test_queued_runs_without_a_daemon_are_a_problem(store: Store) -> None:
    with dagster_instance(store.home):
        assert found(store, "daemon", after(timedelta())).ok
    launch = ["-m", "dagster", "job", "launch", "-m", "memstate_pipeline.definitions", "-j", NIGHTLY]
    here = {"MEMSTATE_HOME": str(store.home.root), "DAGSTER_HOME": str(store.home.dagster)}
    tags = ["--tags", json.dumps({PARTITION_TAG: "s0"})]
    launched = warm.run([*launch, *tags], clean_environment(**here))
    assert launched.returncode == 0, launched.stderr
    finding = found(store, "daemon", after(timedelta()))
    assert finding == Finding(
        "daemon",
        False,
        "queued runs: 1, and no daemon is running, so schedule and sensors rest: `memstate ui` starts it",
    )
    hours_later = after(PATIENCE + timedelta(minutes=1))
    with dagster_instance(store.home) as instance:
        instance.add_daemon_heartbeat(DaemonHeartbeat(hours_later.timestamp(), "SCHEDULER", "one", []))
    assert found(store, "daemon", after(timedelta())) == Finding(
        "daemon", True, "the daemon is running; queued runs: 1"
    )
    stuck = found(store, "daemon", hours_later)
    assert (stuck.ok, "none begins: restart `memstate ui`" in stuck.detail) == (False, True), stuck


def test_a_history_that_cannot_be_read_is_a_finding_with_advice(store: Store) -> None:
    with dagster_instance(store.home) as instance:
        instance.get_runs()
    for file in store.home.dagster.rglob("*.db"):
        file.write_bytes(b"no database " * 1000)
    with pytest.raises(sqlite3.DatabaseError), sqlite3.connect(file) as damaged:
        damaged.execute("SELECT * FROM sqlite_master")
    (finding,) = run_findings(store, after(timedelta()))
    assert not finding.ok
    assert (
        f"{store.home.dagster} cannot be read: file is not a database. Move the folder away to begin a new one"
        in finding.detail
    )


def test_a_history_that_stores_may_share_is_left_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "shared"))
    (finding,) = run_findings(store, after(PATIENCE))
    assert finding.ok
    assert "which stores may share" in finding.detail


def test_evidence_that_waits_for_a_night_that_did_not_come_is_a_problem(store: Store, tmp_path: Path) -> None:
    maintain(store, parse_moment(NIGHT))
    names = {finding.name: finding for finding in examine(str(store.home.root), after(timedelta(hours=72)))}
    assert names["snapshot"].ok, "nothing waits"
    assert names["ledger"].detail.startswith("1 evidence, ")
    (tmp_path / "two.jsonl").write_text('{"title": "Ford", "observed_at": "2026-01-01"}\n')
    assert run_memstate(store.home.root, "import", str(tmp_path / "two.jsonl")).code == 0
    names = {finding.name: finding for finding in examine(str(store.home.root), after(timedelta()))}
    assert names["snapshot"].detail.endswith("; 1 observation since")
    late = examine(str(store.home.root), after(timedelta(hours=72)))
    overdue = {finding.name: finding for finding in late}["snapshot"]
    assert not overdue.ok
    assert "published 3 days ago; 1 observation since; a night is overdue" in overdue.detail
    (store.home.ledger / "accesses").mkdir(exist_ok=True)
    (store.home.ledger / "accesses" / "_delta_log").mkdir(exist_ok=True)
    (store.home.ledger / "accesses" / "_delta_log" / f"{0:020}.json").write_text("garbage")
    names = {finding.name: finding for finding in examine(str(store.home.root), after(timedelta()))}
    assert not names["ledger"].ok
    assert "accesses: " in names["ledger"].detail
