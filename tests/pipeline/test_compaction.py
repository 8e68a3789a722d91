"""Compaction and vacuum of the ledger: smaller, and nothing that a snapshot, a rollback or a backup reads is gone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.model.errors import CompactionRefused, RebuildMismatch
from memstate_core.model.text import iso
from memstate_core.night import compaction
from memstate_core.night.backup.capture import no_capture
from memstate_core.night.compaction import READERS, compact_ledger
from memstate_core.run.store import Store, open_store
from memstate_core.state.ledger import ledger as ledger_module
from memstate_core.state.ledger.chain import read_chain
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.snapshots import load_snapshot, numbers
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import COMPACTION
from tests import warm
from tests.core.night.backup.conftest import failures, rows
from tests.pipeline.conftest import clean_environment, run_memstate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
LATER = iso(datetime.now(UTC) + timedelta(days=1))
NIGHT = "2026-04-0{}T02:00:00Z"
YARD = '{{"observation_id": "late-{0}", "scope": {{"type": "user", "id": "aya"}}, "title": "Late {0}"}}\n'
DIE_AT = """
import os, sys
from memstate_core.state.ledger import keeper, ledger, vacuum

def die(*arguments, **named):
    os._exit(137)

{point} = die
from memstate_pipeline.cli.main import main
sys.argv[0] = "memstate"
main()
"""
TURNING_POINTS = {
    "with joined files that the chain lacks": "ledger.row_hashes",
    "before the chain forgets": "keeper.Keeper.forget",
    "with files that are forgotten and not removed": "vacuum._remove",
    "with some files removed": "vacuum.sync_path",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards with four nights, of which two snapshots are kept; the ledger has a file for each import."""
    folder = tmp_path_factory.mktemp("compaction")
    home = folder / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[store]\nshards = 2\nkeep_snapshots = 2\nniceness = 0\n")
    for number in (1, 2, 3, 4):
        (folder / f"{number}.jsonl").write_bytes(rows(number))
        assert run_memstate(home, "import", str(folder / f"{number}.jsonl"), "--now", NIGHT.format(number)).code == 0
        assert run_memstate(home, "maintain", "--now", NIGHT.format(number)).code == 0
    return home


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "home"))


def contents(store: Store) -> dict[str, Any]:
    """Every row of the ledger, at its newest version and at those that snapshots name."""
    found: dict[str, Any] = {table: store.ledger.scan(table).collect().to_dicts() for table in TABLES}
    for shard in store.shards:
        for number in numbers(store.home, shard):
            manifest = load_snapshot(store.home, shard, number).manifest
            evidence = store.ledger.scan("evidence", manifest.evidence_version).collect()
            found[f"{shard}/{number}"] = evidence["evidence_id"].sort().to_list()
    return {name: sorted(map(repr, found_rows)) for name, found_rows in found.items()}


def data_files(home: Path, table: str) -> int:
    return len(list((home / "ledger" / table).glob("*.parquet")))


def test_files_are_joined_now_and_removed_when_nothing_reads_them(home: Path, tmp_path: Path) -> None:
    store, backups = open_store(home), tmp_path / "backups"
    assert run_memstate(home, "backup", str(backups)).code == 0
    before, status = contents(store), run_memstate(home, "status", "--json").document
    joined = run_memstate(home, "compact", "--json").document
    assert joined["state_hash"] == status["state_hash"]
    assert (joined["freed_bytes"], joined["tables"]["transitions"]["joined_files"]) == (0, 8)
    assert joined["tables"]["transitions"]["waiting_bytes"] > 0, "readers may have listed them"
    assert run_memstate(home, "verify", "--deep").code == 0
    done = run_memstate(home, "compact", "--now", LATER, "--json").document
    evidence, transitions = done["tables"]["evidence"], done["tables"]["transitions"]
    assert (transitions["removed_files"], transitions["waiting_bytes"], transitions["pinned_bytes"]) == (8, 0, 0)
    assert evidence["pinned_bytes"] > 0, "kept snapshots name versions from before"
    assert done["freed_bytes"] == transitions["freed_bytes"] > 0
    assert data_files(home, "transitions") == 1
    assert contents(open_store(home)) == before
    assert run_memstate(home, "verify", "--deep").code == 0
    again = run_memstate(home, "compact", "--now", LATER)
    assert again.stdout.splitlines()[0] == "removed 0 superseded files, 0.0 MiB"

    for number in (1, 2):  # the backup from before, and one of the compacted ledger
        assert run_memstate(home, "backup", str(backups)).code == 0
        restored = tmp_path / f"restored-{number}"
        assert run_memstate(restored, "restore-backup", str(backups), "--backup", str(number)).code == 0
        assert contents(open_store(restored)) == before
        assert failures(restored) == []
    rolled = run_memstate(restored, "rollback", "--shard", "s0", "--now", NIGHT.format(5), "--json")
    assert rolled.code == 0, rolled.stderr
    assert run_memstate(restored, "verify", "--deep").code == 0
    assert run_memstate(restored, "maintain", "--now", NIGHT.format(6)).code == 0

    for number in (5, 6, 7):  # snapshots from before, and what their runs started from, are no longer kept
        (tmp_path / "late.jsonl").write_text(YARD.format(number))
        assert run_memstate(home, "import", str(tmp_path / "late.jsonl"), "--now", NIGHT.format(number)).code == 0
        assert run_memstate(home, "maintain", "--now", NIGHT.format(number)).code == 0
    freed = run_memstate(home, "compact", "--now", LATER, "--json").document["tables"]["evidence"]
    assert freed["removed_files"] == 4
    erased = run_memstate(home, "erase", "--scope", "user:ben", "--yes", "--why", "asked")
    assert erased.code == 0, erased.stderr
    assert run_memstate(home, "verify", "--deep").code == 0
    assert run_memstate(home, "compact", "--now", LATER).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT.format(8)).code == 0


@pytest.mark.parametrize("point", TURNING_POINTS.values(), ids=TURNING_POINTS)
def test_a_killed_one_loses_nothing_and_is_completed(point: str, home: Path) -> None:
    before = contents(open_store(home))
    if point != "ledger.row_hashes":
        assert run_memstate(home, "compact").code == 0
    script = DIE_AT.format(point=point)
    killed = warm.run(["-c", script, "--home", str(home), "compact", "--now", LATER], clean_environment())
    assert killed.returncode == 137, killed.stderr
    assert failures(home) == []
    assert contents(open_store(home)) == before
    assert run_memstate(home, "compact", "--now", LATER).code == 0
    assert contents(open_store(home)) == before
    named = {name for name in read_chain(home / "ledger").files["transitions"] if name.endswith(".parquet")}
    assert {path.name for path in (home / "ledger" / "transitions").glob("*.parquet")} == {
        name for name in named if "/" not in name
    }


def test_what_a_killed_writer_never_committed_is_removed(home: Path) -> None:
    left = home / "ledger" / "evidence" / "part-00000-of-a-killed-writer.parquet"
    left.write_bytes(b"PAR1")
    assert run_memstate(home, "compact").code == 0
    assert not left.exists()


def test_a_backup_in_progress_keeps_its_files(home: Path) -> None:
    files = {table: data_files(home, table) for table in TABLES}
    with no_capture(open_store(home).home, "a backup"):
        answer = run_memstate(home, "compact", "--now", LATER)
    assert answer.code == 3
    assert "a backup" in answer.stderr
    assert {table: data_files(home, table) for table in TABLES} == files


def test_joined_files_with_other_rows_are_set_aside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(home)
    before, whole = contents(store), ledger_module.row_hashes
    monkeypatch.setattr(ledger_module, "row_hashes", lambda rows: whole(rows.head(1)))
    with pytest.raises(CompactionRefused, match="other rows"):
        compact_ledger(store, datetime.now(UTC))
    monkeypatch.undo()
    assert contents(open_store(home)) == before
    assert failures(home) == []
    assert run_memstate(home, "maintain", "--now", NIGHT.format(5)).code == 0


def test_a_ledger_that_folds_to_another_state_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(home)
    files = {table: data_files(home, table) for table in TABLES}
    whole = compaction.fold_recorded

    def other(*arguments: Any) -> Any:
        return replace(whole(*arguments), state_hash="another")

    monkeypatch.setattr(compaction, "fold_recorded", other)
    with pytest.raises(RebuildMismatch, match="another"):
        compact_ledger(store, datetime.now(UTC) + 2 * READERS)
    assert {table: data_files(home, table) for table in TABLES} == files


def test_the_monthly_job_does_the_same(home: Path) -> None:
    schedule = build_defs(home).resolve_schedule_def("compaction")
    assert (schedule.cron_schedule, schedule.job_name) == ("0 7 1 * *", COMPACTION)
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    before = contents(open_store(home))
    with dagster_instance(open_store(home).home) as instance:
        assert build_defs(home).resolve_job_def(COMPACTION).execute_in_process(instance=instance).success
    assert len(open_store(home).ledger.files("transitions")) == 1
    assert contents(open_store(home)) == before


def test_an_empty_store_has_nothing_to_compact(tmp_path: Path) -> None:
    assert compact_ledger(open_store(tmp_path / "home"), datetime.now(UTC)).vacuumed == {}
