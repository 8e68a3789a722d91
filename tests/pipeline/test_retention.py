"""Retention removes what its settings no longer keep, names it, and leaves what is served and read."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.errors import SettingsError
from memstate_core.model.text import parse_moment
from memstate_core.policy.settings import load_settings
from memstate_core.run.store import open_store
from memstate_core.state.sizes import size_of, sizes
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import RETENTION
from memstate_pipeline.retention import due
from memstate_pipeline.run import maintain
from tests.docs.html import Page
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.usefixtures("no_settings")
SETTINGS = "[retention]\nreports = 1\nrun_days = 30\nprocessed_days = 8\n"
LATER = "2100-01-01T00:00:00Z"


def run_ids(home: Path) -> list[str]:
    with dagster_instance(open_store(home).home) as instance:
        return [run.run_id for run in instance.get_runs()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two nights, each with a dump."""
    home = tmp_path / "home"
    for number, night in enumerate(("2026-04-06T02:00:00Z", "2026-04-07T02:00:00Z")):
        inbox = home / "inbox"
        inbox.mkdir(parents=True, exist_ok=True)
        (inbox / f"{number}.jsonl").write_text(
            f'{{"title": "Yard {number}", "observed_at": "2026-04-0{number + 1}"}}\n'
        )
        maintain(open_store(home), parse_moment(night))
    (home / "inbox" / "failed").mkdir(exist_ok=True)
    (home / "inbox" / "failed" / "bad.jsonl").write_text("?")
    return home


@pytest.mark.slow
def test_what_is_old_is_named_and_removed(home: Path) -> None:
    pages = sorted((home / "reports").glob("*-s0.html"), key=lambda page: page.stat().st_mtime_ns)
    runs = run_ids(home)
    default = run_memstate(home, "retention", "--json").document["removed"]
    assert [found["names"] for found in default.values()] == [[], [], []]
    (home / "memstate.toml").write_text(SETTINGS)
    (topic,) = run_memstate(home, "query", "Yard 1", "--stages", "structural", "--json").document["candidates"][:1]
    assert run_memstate(home, "pin", topic["topic_id"]).code == 0
    early = run_memstate(home, "retention", "--dry-run", "--json").document["removed"]
    assert {kind: len(found["names"]) for kind, found in early.items()} == {"reports": 1, "runs": 0, "processed": 0}
    dry = run_memstate(home, "retention", "--now", LATER, "--dry-run", "--json").document
    assert (dry["dry_run"], len(run_ids(home)), len(list((home / "reports").iterdir()))) == (True, 2, 7)
    before = sizes(open_store(home).home)
    answer = run_memstate(home, "retention", "--now", LATER, "--json").document
    assert answer["removed"] == dry["removed"]
    assert answer["removed"]["reports"]["names"] == [pages[0].name]
    of_pin, last = Page(home / "reports" / "index.html").links
    assert (of_pin.startswith("correction-"), last) == (True, pages[1].name), "corrections take no place of nights"
    assert sorted(answer["removed"]["runs"]["names"]) == sorted(runs)
    assert sorted(answer["removed"]["processed"]["names"]) == ["0.jsonl", "1.jsonl"]
    assert all(found["bytes"] > 0 for found in answer["removed"].values())
    assert run_ids(home) == []
    assert not [path for path in (home / "dagster").rglob("*") if any(run in path.name for run in runs)]
    assert [path.name for path in (home / "inbox" / "failed").iterdir()] == ["bad.jsonl"]
    status = run_memstate(home, "status", "--json").document
    assert (status["evidence"], status["snapshot"]) == (2, "s0/3")
    assert status["sizes"]["processed"] == 0 < before["processed"]
    assert status["sizes"]["reports"] < before["reports"]
    assert run_memstate(home, "verify", "--deep").code == 0
    again = run_memstate(home, "retention", "--now", LATER)
    assert again.stdout.splitlines() == [f"removed 0 {kind}, 0.0 MiB" for kind in ("reports", "runs", "processed")]
    assert run_memstate(home, "maintain", "--now", "2026-04-08T02:00:00Z").code == 0


@pytest.mark.slow
def test_the_monthly_job_does_the_same_and_keeps_its_own_run(home: Path) -> None:
    (home / "memstate.toml").write_text(SETTINGS)
    schedule = build_defs(home).resolve_schedule_def("retention")
    assert (schedule.cron_schedule, schedule.job_name) == ("0 6 1 * *", RETENTION)
    old = parse_moment("2026-04-01T00:00:00Z") - timedelta(days=4000)
    for path in (home / "inbox" / "processed").iterdir():
        os.utime(path, (old.timestamp(), old.timestamp()))
    with dagster_instance(open_store(home).home) as instance:
        result = build_defs(home).resolve_job_def(RETENTION).execute_in_process(instance=instance)
        assert result.success
        assert instance.get_run_by_id(result.run_id).status is dg.DagsterRunStatus.SUCCESS
    assert len(list((home / "reports").glob("*-s0.html"))) == 1
    assert len(list((home / "inbox" / "processed").iterdir())) == 2, "an old dump that was read a moment ago stays"


def recorded(home: Path) -> dict[str, int]:
    """How many rows each table of Dagster's events has."""
    with closing(sqlite3.connect(home / "dagster" / "history" / "runs" / "index.db")) as connection:
        tables = ("asset_check_executions", "asset_event_tags", "event_logs")
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


@pytest.mark.slow
def test_verdicts_of_removed_runs_go_but_the_newest_of_each_check_and_events_without_a_run_too(home: Path) -> None:
    (home / "memstate.toml").write_text(SETTINGS)
    with dagster_instance(open_store(home).home) as instance:
        for _ in range(3):
            instance.report_runless_asset_event(dg.AssetObservation("snapshot", partition="s0"))
    checks = recorded(home)["asset_check_executions"]
    assert run_memstate(home, "retention", "--json").code == 0
    assert recorded(home)["asset_check_executions"] == checks, "young ones stay"
    assert run_memstate(home, "retention", "--now", LATER, "--json").code == 0
    assert recorded(home) == {"asset_check_executions": checks // 2, "asset_event_tags": 0, "event_logs": 1}
    assert run_memstate(home, "maintain", "--now", "2026-04-08T02:00:00Z").code == 0


@pytest.mark.slow
def test_runs_of_a_shared_instance_stay(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "memstate.toml").write_text(SETTINGS)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "shared"))
    store = open_store(home)
    maintain(store, parse_moment("2026-04-08T02:00:00Z"))
    with dagster_instance(store.home) as instance:
        assert len(instance.get_runs()) == 1
        removals = {removal.kind: removal.names for removal in due(store, instance, parse_moment(LATER))}
    assert (len(removals["reports"]), removals["runs"]) == (2, [])


def test_dumps_stay_as_long_as_they_may_grow(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text("[retention]\nprocessed_days = 7\n")
    with pytest.raises(SettingsError, match="at least 8"):
        load_settings(tmp_path, {})


def test_a_size_counts_files_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "a" / "c").symlink_to(tmp_path / "a" / "b")
    assert (size_of(tmp_path), size_of(tmp_path / "a" / "b"), size_of(tmp_path / "none")) == (5, 5, 0)
