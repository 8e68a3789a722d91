"""Manual overrides of forgetting: restore, pin, undo, and queries for archived topics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.state.home import Home
from memstate_pipeline.instance import dagster_instance
from tests import warm
from tests.pipeline.conftest import NIGHT, Memstate, clean_environment, run_memstate

pytestmark = pytest.mark.slow

POLICY = """[policy]
topic_count_soft_limit = 0
salience_half_life_days = 2.0
half_life_growth_max = 1.0
summary_keep_revisions = 2
"""
EVALUATED = dg.DagsterEventType.ASSET_CHECK_EVALUATION
MONTHS_LATER, NIGHT_AFTER = "2026-06-05T00:00:00Z", "2026-06-06T00:00:00Z"


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which everything has faded; tests copy it."""
    home = tmp_path_factory.mktemp("forget") / "home"
    home.mkdir()
    (home / "memstate.toml").write_text(POLICY)
    (home / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows()))
    assert run_memstate(home, "import", str(home / "dump.jsonl"), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", MONTHS_LATER).code == 0
    return home


def _rows() -> list[dict[str, Any]]:
    yard = {"scope": {"type": "user", "id": "ines"}, "topic_key": "yard", "title": "Old Ferry Yard"}
    gates = [
        {"observed_at": f"2026-03-0{day}T00:00:00Z", "fields": [{"name": "gate", "value": f"state {day}"}]}
        for day in range(1, 7)
    ]
    return [yard | row for row in gates]


@pytest.fixture
def home(forgotten: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(forgotten, tmp_path / "home"))


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


def yard(memstate: Memstate, *options: str) -> dict[str, Any]:
    """The one topic's record."""
    topic = memstate("export", "--json").document["topics"][0]["id"]
    return dict(memstate("topic", topic, "--json", *options).document)


def gates(record: dict[str, Any]) -> list[Any]:
    return [revision["value"] for revision in record["fields"]["gate"]["history"]]


def test_faded_topics_are_left_out_by_default_and_complete_on_request(memstate: Memstate) -> None:
    found = memstate("query", "the gate of the ferry yard", "--json").document
    assert found["candidates"] == []
    record = yard(memstate, "--history")
    assert (record["state"], record["fields"]["gate"]["detached"]) == ("archived", True)
    assert gates(record)[:2] == ["state 6", "state 5"]
    assert gates(record)[2]["count"] == 4
    assert gates(yard(memstate, "--history", "--expand")) == [f"state {day}" for day in range(6, 0, -1)]
    named = memstate("query", "gate", "--topic", record["id"], "--json").document["candidates"]
    assert [field["current"]["value"] for field in named[0]["fields"]] == ["state 6"]
    then = yard(memstate, "--as-of", "2026-03-02T12:00:00Z")
    assert gates(then) == ["state 2"]


def test_restoring_is_complete_and_lasts(memstate: Memstate) -> None:
    topic = yard(memstate)["id"]
    answer = memstate("restore", topic, topic, "--now", MONTHS_LATER, "--json")
    assert (answer.code, answer.document["restored"]) == (0, [topic])
    for _ in range(2):
        record = yard(memstate, "--history")
        assert (record["state"], record["fields"]["gate"]["detached"], len(gates(record))) == ("active", False, 6)
        night = memstate("maintain", "--now", NIGHT_AFTER, "--json").document
        assert all(check["passed"] for check in night["checks"])


def test_undo_reports_what_it_restored(memstate: Memstate) -> None:
    answer = memstate("undo", yard(memstate)["id"], "--now", MONTHS_LATER, "--json")
    assert (answer.code, answer.document["action"]) == (0, "restored and attached and expanded")
    assert memstate("verify").code == 0


def test_a_pin_holds_until_it_is_removed(memstate: Memstate) -> None:
    topic = yard(memstate)["id"]
    assert memstate("pin", topic, "--now", MONTHS_LATER, "--json").document["pinned"] == [topic]
    memstate("maintain", "--now", "2026-12-01T00:00:00Z")
    kept = yard(memstate)
    assert (kept["state"], kept["pinned"]) == ("active", True)
    assert memstate("pin", topic, "--off", "--now", "2026-12-02T00:00:00Z", "--json").document["unpinned"] == [topic]
    memstate("maintain", "--now", "2027-06-01T00:00:00Z")
    assert (yard(memstate)["state"], yard(memstate)["pinned"]) == ("active", False)


KILLED = """
import os, sys
import memstate_pipeline.cli.forget as module

def die(*arguments, **named):
    os._exit(137)

module.{name} = die
from memstate_pipeline.cli.main import main
sys.argv = ["memstate", "--home", sys.argv[1], "restore", sys.argv[2], "--now", {now!r}]
main()
"""


@pytest.mark.parametrize("name", ["publish", "show"], ids=["before it published", "after it published"])
def test_a_restore_that_was_killed_and_is_run_again_counts_one_access(
    home: Path, memstate: Memstate, name: str
) -> None:
    """It counted two."""
    topic = yard(memstate)["id"]
    script = KILLED.format(name=name, now=MONTHS_LATER)
    assert warm.run(["-c", script, str(home), topic], clean_environment()).returncode == 137
    assert memstate("restore", topic, "--now", MONTHS_LATER).code == 0
    assert yard(memstate)["state"] == "active"
    lines = [line for file in (home / "accesses").iterdir() if file.is_file() for line in file.read_text().splitlines()]
    assert [json.loads(line)["topic_id"] for line in lines if "topic_id" in line] == [topic]


@pytest.mark.parametrize("command", ["restore", "pin"])
def test_an_unknown_topic_is_refused_and_nothing_is_recorded(home: Path, memstate: Memstate, command: str) -> None:
    answer = memstate(command, yard(memstate)["id"], "nobody", "--json")
    assert answer.code == 1
    assert "nobody" in answer.document["error"]["message"]
    assert not list(home.glob("accesses/*.jsonl"))
    assert yard(memstate)["state"] == "archived"


def test_more_pins_than_the_bound_refuse_no_night_and_every_command_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[policy]\ntopic_count_soft_limit = 0\nmax_active_topics = 1\n")
    rows = [row | {"topic_key": key, "title": key} for key, row in zip(("yard", "mill"), _rows(), strict=False)]
    (home / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_memstate(home, "import", str(home / "dump.jsonl"), "--now", NIGHT)
    run_memstate(home, "maintain", "--now", NIGHT)
    assert run_memstate(home, "status", "--json").document["warnings"] == []
    topics = [topic["id"] for topic in run_memstate(home, "export", "--json").document["topics"]]
    pinned = run_memstate(home, "pin", *topics, "--now", MONTHS_LATER, "--json").document
    night = run_memstate(home, "maintain", "--now", NIGHT_AFTER, "--json")
    assert (night.code, [check["passed"] for check in night.document["checks"]]) == (0, [True] * 13)
    warning = "user:ines has 2 active topics and the bound is 1 (max_active_topics)"
    for warnings in (pinned["warnings"], night.document["warnings"]):
        (said,) = warnings
        assert said.startswith(warning)
    assert f"warning: {warning}" in run_memstate(home, "status").stdout
    explained = run_memstate(home, "doctor", "--topic", topics[0]).stdout
    assert "the bound is 1 (max_active_topics), which its 2 pinned topics exceed." in explained
    with dagster_instance(Home(home)) as instance:
        events = [event for run in instance.get_runs() for event in instance.all_logs(run.run_id, EVALUATED)]
    verdicts = [event.get_dagster_event().asset_check_evaluation_data for event in events]
    assert [each.passed for each in verdicts if each.check_name == "pins_within_bound"] == [False, True]
