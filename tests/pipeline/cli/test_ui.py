"""`memstate ui`: the asset graph in a real browser, and a run that is started there."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.run.store import open_store
from memstate_pipeline import processes
from memstate_pipeline.cli import ui as ui_command
from memstate_pipeline.cli.main import app
from memstate_pipeline.instance import dagster_instance
from tests.browser import chromium, keep_screenshot, requires_chromium
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.test_dead_runs import killed_run

pytestmark = pytest.mark.slow
LAUNCH = """
mutation Launch($tags: [ExecutionTag!]) {
  launchRun(executionParams: {
    selector: {repositoryLocationName: "memstate_pipeline.definitions", repositoryName: "__repository__",
               jobName: "nightly_maintenance"},
    executionMetadata: {tags: $tags}
  }) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}
"""
RETRIES = """
query Retries($parent: String!) {
  runsOrError(filter: {tags: [{key: "dagster/parent_run_id", value: $parent}]}) {
    ... on Runs { results { runId } } ... on PythonError { message }
  }
}
"""
LISTED = """
query Listed($job: String!) {
  pipelineOrError(params: {
    repositoryLocationName: "memstate_pipeline.definitions", repositoryName: "__repository__", pipelineName: $job
  }) {
    ... on Pipeline {
      runs(limit: 10) { runId repositoryOrigin { repositoryName repositoryLocationName } }
    }
    ... on PythonError { message }
  }
}
"""
STATUS = "query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


@dataclass(frozen=True)
class Ui:
    """A running UI."""

    url: str

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ui")
    dump = folder / "one.jsonl"
    dump.write_text('{"title": "Yard", "observed_at": "2026-01-01", "fields": [{"name": "gate", "value": "shut"}]}\n')
    assert run_memstate(folder / "home", "import", str(dump)).code == 0
    return folder / "home"


@pytest.fixture(scope="module")
def ui(home: Path) -> Iterator[Ui]:
    """One UI for all tests: its processes take half a minute of CPU time to start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MEMSTATE_", "DAGSTER_"))}
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "ui", "--port", str(port)]
    with (home / "ui.log").open("w") as log:
        server = subprocess.Popen(command, env=clean, stdout=log, stderr=log, start_new_session=True)
        try:
            yield _when_ready(Ui(f"http://127.0.0.1:{port}"), home / "ui.log")
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


def _when_ready(ui: Ui, log: Path) -> Ui:
    for _ in range(360):
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{ui.url}/server_info", timeout=2).close()
            return ui
        time.sleep(0.5)
    raise AssertionError(log.read_text()[-3000:])


def launched_run(ui: Ui) -> str:
    tags = [{"key": "dagster/partition", "value": "s0"}, {"key": "memstate/now", "value": NIGHT}]
    launched = ui.ask(LAUNCH, tags=tags)["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    return str(launched["run"]["runId"])


def ended(ui: Ui, run_id: str) -> str:
    """The status in which a run ended, or the last one after two minutes."""
    status = "QUEUED"
    for _ in range(240):
        status = ui.ask(STATUS, id=run_id)["runOrError"]["status"]
        if status in ("SUCCESS", "FAILURE", "CANCELED"):
            break
        time.sleep(0.5)
    return status


def _process_of(home: Path, run_id: str) -> int:
    """The process that holds the store for a run."""
    for _ in range(2400):
        with contextlib.suppress(OSError, ValueError):
            holder = json.loads((home / "run.lock").with_suffix(".holder.json").read_text())["holder"]
            if run_id in holder:
                return int(holder.split("process ")[1].split()[0].rstrip(","))
        time.sleep(0.05)
    raise AssertionError("no run held the store")


def _retried(ui: Ui, run_id: str) -> str:
    """The run that Dagster started in place of another."""
    for _ in range(240):
        if found := ui.ask(RETRIES, parent=run_id)["runsOrError"]["results"]:
            return str(found[0]["runId"])
        time.sleep(0.5)
    raise AssertionError("no run was started in its place")


def _page_of(home: Path, run_id: str) -> Path:
    """The page of a failed run, which a sensor writes."""
    page = home / "reports" / f"{run_id}-s0.html"
    for _ in range(240):
        if page.exists():
            return page
        time.sleep(0.5)
    raise AssertionError((home / "ui.log").read_text()[-3000:])


@dataclass(frozen=True)
class Nights:
    """One run of the command line, then one of the UI, and the status after them."""

    of_command: str
    of_ui: str
    status: dict[str, Any]


@pytest.fixture(scope="module")
def nights(ui: Ui, home: Path) -> Nights:
    assert run_memstate(home, "maintain", "--now", "2026-01-02T00:00:00Z").code == 0
    of_command = run_memstate(home, "status", "--json").document["last_run"]["run_id"]
    run_id = launched_run(ui)
    assert ended(ui, run_id) == "SUCCESS", (home / "ui.log").read_text()[-3000:]
    return Nights(of_command, run_id, run_memstate(home, "status", "--json").document)


def test_a_run_of_the_command_line_is_listed_under_its_job_like_one_of_the_ui(ui: Ui, nights: Nights) -> None:
    listed = ui.ask(LISTED, job="nightly_maintenance")["pipelineOrError"]["runs"]
    assert {run["runId"] for run in listed} == {nights.of_command, nights.of_ui}
    first, second = (run["repositoryOrigin"] for run in listed)
    assert first == second


def test_a_run_started_in_the_ui_publishes(nights: Nights) -> None:
    at = nights.status["last_run"]["published_at"]
    assert nights.status["last_run"] == {"run_id": nights.of_ui, "now": NIGHT, "published_at": at}


def test_a_second_ui_of_a_store_is_refused_and_a_taken_port_is_not_used(ui: Ui, home: Path, tmp_path: Path) -> None:
    second = run_memstate(home, "ui", "--json")
    assert second.code == 3
    assert f"the UI of this store runs already, at {ui.url}, process " in second.document["error"]["message"]
    port = ui.url.rpartition(":")[2]
    (tmp_path / "other").mkdir()
    taken = run_memstate(tmp_path / "other", "ui", "--port", port)
    assert (taken.code, taken.stdout) == (1, "")
    assert f"cannot listen on 127.0.0.1, port {port}; choose another" in taken.stderr


def test_without_a_wanted_port_the_first_free_one_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ui_command, "FIRST_PORT", port)
        options = ["--dry-run", "--log-format", "json", "--json"]
        app(["--home", str(tmp_path), "ui", *options], standalone_mode=False)
    offered = json.loads(capsys.readouterr().out)
    assert port < int(offered["url"].rpartition(":")[2]) < port + ui_command.PORTS
    assert all(command[-2:] == ["--log-format", "json"] for command in offered["commands"].values())


def test_it_ends_runs_that_a_power_cut_left_before_its_processes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    dump = tmp_path / "one.jsonl"
    dump.write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    assert run_memstate(tmp_path / "home", "import", str(dump)).code == 0
    (tmp_path / "home" / "memstate.toml").write_text("[store]\nniceness = 0\n")
    home = open_store(tmp_path / "home", {}).home
    dead, seen = killed_run(home), list[dg.DagsterRunStatus]()

    def started(*_: object) -> processes.Ended:
        with dagster_instance(home) as instance:
            seen.extend(run.status for run in instance.get_runs())
        return processes.Ended("daemon", 1)

    monkeypatch.setattr(processes, "run_together", started)
    assert app(["--home", str(home.root), "ui", "--port", "0"], standalone_mode=False) == 1
    assert seen == [dg.DagsterRunStatus.FAILURE]
    assert f"Run {dead} is marked as failed, since its process is gone." in capsys.readouterr().err


def test_a_run_whose_process_is_killed_runs_again_by_itself(ui: Ui, home: Path) -> None:
    run_id = launched_run(ui)
    os.kill(_process_of(home, run_id), signal.SIGKILL)
    assert ended(ui, run_id) == "FAILURE", (home / "ui.log").read_text()[-3000:]
    retry = _retried(ui, run_id)
    assert ended(ui, retry) == "SUCCESS", (home / "ui.log").read_text()[-3000:]
    published = run_memstate(home, "status", "--json").document
    at = published["last_run"]["published_at"]
    assert published["last_run"] == {"run_id": retry, "now": NIGHT, "published_at": at}
    assert "Not published" in _page_of(home, run_id).read_text()
    assert run_memstate(home, "status", "--json").document["last_failure"] is None, "the retry is the last run"


def test_a_killed_command_keeps_no_later_run_waiting(ui: Ui, home: Path) -> None:
    dead = killed_run(open_store(home, {}).home)
    run_id = launched_run(ui)
    assert ended(ui, run_id) == "SUCCESS", (home / "ui.log").read_text()[-3000:]
    assert ended(ui, dead) == "FAILURE", (home / "ui.log").read_text()[-3000:]


@pytest.fixture
def asked_for() -> Iterator[tuple[list[str], str]]:
    """What a server on this machine is asked for, and a picture on it in Markdown."""
    asked: list[str] = []

    class Pictures(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.extend([self.path] if self.path == "/picture" else [])
            self.send_error(404)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Pictures) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield asked, f"![seen](http://127.0.0.1:{server.server_port}/picture)"
        server.shutdown()


@requires_chromium
def test_the_control_room_in_a_browser(home: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A night of the command line, on every page that an operator opens; no dialog stands before one.

    Its topic and its scope have names that Markdown would make a picture of: nothing is asked for it.
    """
    asked, picture = request.getfixturevalue("asked_for")
    lighthouse = {"title": f"Lighthouse {picture}", "scope": {"type": "user", "id": picture}, "summary": "It is lit."}
    dump = tmp_path / "another.jsonl"
    dump.write_text(json.dumps(lighthouse | {"observed_at": "2026-01-01"}) + "\n")
    assert run_memstate(home, "import", str(dump)).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    run = run_memstate(home, "status", "--json").document["last_run"]["run_id"]
    ui: Ui = request.getfixturevalue("ui")
    with chromium(width=1500) as browser:
        for name, (path, texts) in _pages(run).items():
            shown = _shown(browser, f"{ui.url}{path}", {*texts, "Deployment"})
            assert "Privacy Policy" not in shown, "the dialog that asks for a mail address"
            keep_screenshot(browser, f"dagster-{name}")
        links = browser.find_elements("xpath", f"//a[contains(@href, '{run}') and contains(@href, '8420')]")
        assert {link.get_attribute("href") for link in links} == {f"http://127.0.0.1:8420/v1/reports/{run}-s0.html"}
        assert {link.get_attribute("target") for link in links} == {"_blank"}
        browser.get(picture[picture.index("http") : -1])
    assert asked == ["/picture"], "once, by the address itself, and never by a page"


def _pages(run: str) -> dict[str, tuple[str, set[str]]]:
    """The path of each page, and what it has to show; the report comes last."""
    job, short = "nightly_maintenance", run[:8]
    place = f"/locations/__repository__@memstate_pipeline.definitions/jobs/{job}"
    return {
        "groups": ("/asset-groups", {"Global asset lineage", "ingest", "topics", "revise", "forget", "publish"}),
        "runs": ("/runs", {short, job, "partition: s0", "Success"}),
        "job": (f"{place}/runs", {short, "Success"}),
        "partitions": ("/assets/snapshot?view=partitions", {"Materialized (1)", "Failed (0)", "Missing (0)"}),
        "timeline": ("/overview/activity/timeline", {"memstate_pipeline.definitions", job}),
        "backfills": ("/runs?view=backfills", {"Backfills"}),
        "evidence": (
            "/assets/evidence",
            {"Owners", "memstate", "Delta Lake", "memstate/writes: ledger", "observed_at"},
        ),
        "topics": (
            "/assets/topics",
            {"Topic.title", "changed topics", "Lighthouse ![seen](http://127.0.0.1:", "topics_created"},
        ),
        "automation": ("/automation", {"nightly", "weekly_verify", "retention", "compaction", "memory_pressure"}),
        "report": (
            "/assets/maintenance_report",
            {"seconds by step", "growth", "placements", "memstate/writes: report"},
        ),
    }


def _shown(browser: Any, url: str, wanted: set[str]) -> str:
    """The text of a page, as soon as it has all of these; it is opened again if it stays empty."""
    for tick in range(360):
        if tick % 40 == 0:  # a page that was opened while definitions were loaded may stay empty
            browser.get(url)
        shown = str(browser.execute_script("return document.body.innerText"))
        if all(text in shown for text in wanted):
            return shown
        time.sleep(0.5)
    raise AssertionError((url, {text for text in wanted if text not in shown}, shown))
