"""A night that fails leaves a page, and `status` and `report` speak of it until the next night publishes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_pipeline.report.latest import last_failure
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    inbox = tmp_path / "home" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "one.jsonl").write_text('{"title": "Yard", "observed_at": "2026-01-01"}\nbroken\n')
    return tmp_path / "home"


def test_a_night_that_fails_leaves_a_page_that_comes_first(home: Path) -> None:
    (home / "memstate.toml").write_text('[embedding]\nmodel = "/no <b>such</b> model"\n')
    failed = run_memstate(home, "maintain", "--now", NIGHT)
    assert failed.code == 1
    status = run_memstate(home, "status", "--json").document["last_failure"]
    assert (status["shard"], status["error"]["type"], status["now"]) == ("s0", "ModelUnavailable", NIGHT)
    page = Path(status["page"])
    document = json.loads(page.with_suffix(".json").read_text())
    assert (document["run_id"], document["snapshot"]) == (status["run_id"], None)
    assert (document["ingest"]["quarantined"], document["counts"]["evidence"]) == (1, 1), "what it had done"
    html = page.read_text()
    assert "Not published" in html
    assert "nothing is served yet" in html
    assert "/no &lt;b&gt;such&lt;/b&gt; model" in html
    assert run_memstate(home, "status").stdout.startswith("the last night of s0 failed: ")
    assert run_memstate(home, "report").stdout.startswith(f"run {status['run_id']} failed: ")
    (home / "memstate.toml").unlink()
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    assert run_memstate(home, "status", "--json").document["last_failure"] is None
    assert run_memstate(home, "report").stdout.startswith("run ")
    assert " failed: " not in run_memstate(home, "report").stdout
    assert page.exists()


def test_a_night_that_fails_before_it_begins_leaves_a_page_too(home: Path) -> None:
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    for file in (home / "ledger" / "evidence").glob("*.parquet"):
        file.write_bytes(b"damaged")
    assert run_memstate(home, "maintain", "--now", "2026-09-01T02:00:00Z").code == 4
    failure = last_failure(open_store(home, {}))
    assert failure is not None
    assert (failure["error"]["type"], failure["now"]) == ("LedgerDamaged", "2026-09-01T02:00:00Z")
    assert "snapshot s0/1 is still served" in Path(failure["page"]).read_text()


def test_a_night_whose_report_cannot_be_written_says_that_it_published(home: Path) -> None:
    (home / "reports").write_text("a file where the folder of reports belongs")
    failed = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert (failed.code, failed.document["error"]["published"]) == (1, "s0/1")
    assert "s0/1 was published before and is served" in failed.document["error"]["message"]
    assert "Nothing was published" not in failed.document["error"]["message"]
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s0/1"


def test_each_shard_is_judged_by_its_own_last_page(home: Path) -> None:
    reports = home / "reports"
    reports.mkdir()
    for name, content in {"a-s0": {"error": {}}, "b-s1": {}}.items():
        (reports / f"{name}.json").write_text(json.dumps({"run_id": name, "shard": name[-2:], "now": None} | content))
        (reports / f"{name}.html").write_text("")
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    failure = last_failure(open_store(home, {}))
    assert failure is not None
    assert failure["run_id"] == "a-s0"
    (reports / "correction-1-s0.json").write_text("{}")
    (reports / "correction-1-s0.html").write_text("")
    assert last_failure(open_store(home, {})) == failure, "a correction is no night"
    (reports / "c-s0.json").write_text("{}")
    (reports / "c-s0.html").write_text("")
    assert last_failure(open_store(home, {})) is None
