"""A run that is killed while it writes its report has published: the next one reports it and goes on."""

from __future__ import annotations

import json
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstate_core.run.store import open_store
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, end_dead_runs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.report.run_report import report_interrupted
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow

NEXT = "2026-04-07T02:00:00Z"
KILLED_IN = """
import os, signal, sys
from pathlib import Path
from memstate_pipeline.report import run_report

def kill(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

for name in sys.argv[3:]:
    setattr(run_report, name, kill)
from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain
maintain(open_store(Path(sys.argv[1])), parse_moment(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with evidence, and a broken file in its inbox, before its first night."""
    home = tmp_path_factory.mktemp("waiting") / "home"
    dump = home.parent / "dump.jsonl"
    dump.write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    assert run_memstate(home, "import", str(dump)).code == 0
    (home / "inbox").mkdir(exist_ok=True)
    (home / "inbox" / "broken.json.gz").write_bytes(b"\x1f\x8bno")
    return home


def killed(home: Path, at: str, *names: str) -> None:
    """A night whose process is killed in a function of its report."""
    done = warm.run(["-c", KILLED_IN, str(home), at, *names], clean_environment())
    assert done.returncode == -signal.SIGKILL, done.stderr


def reports(home: Path) -> list[dict[str, Any]]:
    """The reports, by snapshot."""
    found = [json.loads(path.read_text()) for path in (home / "reports").glob("*.json")]
    assert len(found) == len([*(home / "reports").glob("*-s0.html")])
    return sorted(found, key=lambda document: str(document["snapshot"]))


def ended(home: Path) -> str:
    """What Dagster says of the dead run."""
    store = open_store(home)
    with dagster_instance(store.home) as instance:
        (run_id,) = end_dead_runs(store, instance, datetime.now(UTC) + 2 * STARTED_AND_SILENT)
        return "\n".join(str(event.message) for event in instance.all_logs(run_id))


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize(("name", "is_complete"), [("_written", True), ("collect", False)])
def test_the_next_night_reports_a_run_that_was_killed_in_its_report(
    waiting: Path, tmp_path: Path, name: str, is_complete: bool
) -> None:
    home = Path(shutil.copytree(waiting, tmp_path / "home"))
    killed(home, NIGHT, name)
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s0/1"
    assert not (home / "reports").exists()
    assert "It had published s0/1; the next run writes its report." in ended(home)

    again = run_memstate(home, "maintain", "--now", NEXT, "--json")
    assert again.code == 0, again.stderr
    assert (again.document["snapshot"], again.document["warnings"]) == ("s0/2", [])
    first, second = reports(home)
    assert (first["snapshot"], second["snapshot"]) == ("s0/1", "s0/2")
    assert (first["now"], first["counts"]["topics_created"]) == (NIGHT, 1)
    assert "died after it had published; a later run wrote this report" in first["warnings"][-1]
    assert any("broken.json.gz" in error for error in first["ingest"]["errors"])
    assert [warning.startswith("this report is incomplete") for warning in first["warnings"]].count(True) == (
        0 if is_complete else 1
    )
    assert not (home / "work" / "s0").exists()


def test_a_report_whose_numbers_kill_the_process_too_keeps_no_night_from_publishing(
    waiting: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(waiting, tmp_path / "home"))
    killed(home, NIGHT, "collect", "collect_numbers")
    killed(home, NEXT, "collect", "collect_numbers")
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s0/1"
    again = run_memstate(home, "maintain", "--now", NEXT, "--json")
    assert again.code == 0, again.stderr
    died, second = sorted(reports(home), key=lambda report: report["snapshot"] or "")
    assert (died["snapshot"], died["error"]["type"]) == (None, "ProcessDied"), "it died before it published"
    assert second["snapshot"] == "s0/2"


@pytest.mark.parametrize("name", ["run.json", "import.json"])
def test_a_damaged_scratch_folder_is_no_run_to_report(waiting: Path, name: str) -> None:
    store = open_store(waiting)
    scratch = store.home.work("s0")
    scratch.mkdir(parents=True)
    try:
        (scratch / name).write_bytes(b"\xffgarbage")
        assert report_interrupted(store, "s0") is None
    finally:
        shutil.rmtree(scratch)


def test_a_correction_reports_a_run_that_was_killed_in_its_report(waiting: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(waiting, tmp_path / "home"))
    killed(home, NIGHT, "collect")
    topic = run_memstate(home, "export", "--json").document["topics"][0]["id"]
    assert run_memstate(home, "pin", topic).code == 0
    assert [report["snapshot"] for report in reports(home)] == ["s0/1", "s0/2"]  # the run, then the correction
