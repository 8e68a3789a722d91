"""Nights that gates refuse: nothing is published or lost, an acceptance lets one night through, the next is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memstate_core.model.errors import AcceptanceInvalid
from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.text import parse_moment
from memstate_core.night.gates import suite
from memstate_core.night.gates.verdict import GATES
from memstate_core.run.run import pending_path
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import ACCEPTED, SET_ASIDE
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.resources import ACCEPT_TAG, NOW_TAG, WHY_TAG
from memstate_pipeline.run import maintain
from tests.pipeline.conftest import Answer, run_memstate

pytestmark = pytest.mark.slow

NIGHTS = [f"2026-04-{day:02}T02:00:00Z" for day in range(6, 12)]
RULE = """
[[policy.rules]]
name = "no notes"
on = "nightly"
when = "topic_kind == 'note'"
do = "archive"
"""
WHY = "the notes were agreed to go"


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "topic_key": f"k{n}",
            "title": f"Matter {n}",
            "topic_kind": "note" if n % 2 else "deal",
            "observed_at": "2026-01-01",
            "scope": {"type": "user", "id": "small" if n >= 118 else "large"},
        }
        for n in range(count)
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with one published night: 120 topics, two of them in a scope of their own."""
    home, dump = tmp_path / "home", tmp_path / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows(120)))
    assert run_memstate(home, "import", str(dump)).code == 0
    first = night(home, 0)
    assert first.code == 0, first.stderr
    verdicts = {check["name"]: check["passed"] for check in first.document["checks"]}
    assert [verdicts[gate] for gate in GATES] == [True] * len(GATES)
    return home


def drop(home: Path, name: str, observations: list[dict[str, Any]]) -> None:
    (home / "inbox").mkdir(exist_ok=True)
    (home / "inbox" / name).write_text("".join(json.dumps(row) + "\n" for row in observations))


def night(home: Path, number: int, *options: str) -> Answer:
    return run_memstate(home, "maintain", "--now", NIGHTS[number], "--json", *options)


def served(home: Path) -> tuple[str, str]:
    status = run_memstate(home, "status", "--json").document
    return status["snapshot"], status["state_hash"]


def accepted(home: Path) -> list[tuple[str, str, str]]:
    """The gate, the user and the reason of each acceptance that the ledger records."""
    decided = open_store(home).ledger.scan("transitions").filter(pl.col("kind") == ACCEPTED).sort("seq").collect()
    found = [(json.loads(row["payload_json"]), row["reason"]) for row in decided.iter_rows(named=True)]
    return [(payload["gate"], payload["by"], why) for payload, why in found]


def test_a_policy_that_empties_the_store_is_refused_until_it_is_accepted(home: Path, tmp_path: Path) -> None:
    before = served(home)
    (home / "memstate.toml").write_text(RULE)
    drop(home, "late.jsonl", rows(121)[120:])
    for _ in range(2):  # the same refusal, until it is accepted or its cause is gone
        refused = night(home, 1)
        assert refused.code == 4, refused.stderr
        error = refused.document["error"]
        assert (error["type"], error["refused"]) == ("GateRefused", ["shrinkage"])
        for part in (
            "60 archived and 0 merged by a policy that changed",
            "at most 25 %",
            "`memstate plan`",
            "--accept shrinkage",
        ):
            assert part in error["message"]
        assert served(home) == before
        assert run_memstate(home, "status", "--json").document["evidence"] == 121
    assert accepted(home) == []

    plan = str(tmp_path / "plan.json")
    made = run_memstate(home, "plan", "--now", NIGHTS[1], "--output", plan)
    assert made.code == 0, made.stderr
    assert "gate shrinkage fails in s0" in made.stdout
    assert run_memstate(home, "apply", plan, "--json").document["error"]["refused"] == ["shrinkage"]
    assert served(home) == before
    done = run_memstate(home, "apply", plan, "--accept", "shrinkage", "--why", WHY, "--json", LOGNAME="aya")
    assert done.code == 0, done.stderr
    assert served(home) == (done.document["snapshot"], done.document["state_hash"]) != before
    assert done.document["counts"]["evidence"] == 1
    assert accepted(home) == [("shrinkage", "aya", WHY)]
    page = home / "reports" / f"{done.document['run_id']}-s0.html"
    assert "! accepted" in page.read_text()
    for file in (page, page.with_suffix(".json")):
        assert f"accepted by aya: {WHY}" in file.read_text()
    assert run_memstate(home, "verify").code == 0
    assert run_memstate(home, "rebuild").code == 0
    assert accepted(home) == [("shrinkage", "aya", WHY)]

    assert night(home, 2).code == 0  # compared with what was accepted
    strict = '[gates]\nscope_vanished = "error"\n'
    (home / "memstate.toml").write_text(RULE.replace("note", "deal") + strict)
    again = night(home, 3)
    assert (again.code, again.document["error"]["refused"]) == (4, ["scope_vanished"])  # too small for shrinkage
    assert "user:large had 59" in again.document["error"]["message"]
    assert night(home, 3, "--accept", "growth", "--why", WHY).code == 4  # another gate

    (home / "memstate.toml").write_text(RULE + "[gates]\ngrowth_factor = 1.1\ncompared_from = 1\n")
    drop(home, "more.jsonl", [row | {"topic_kind": "deal"} for row in rows(160)[130:]])
    warned = night(home, 3)  # the cause is gone
    assert warned.code == 0, warned.stderr
    failed = [(check["name"], check["severity"]) for check in warned.document["checks"] if not check["passed"]]
    assert failed == [("growth", "WARN")]
    details = {check["name"]: check.get("detail") for check in warned.document["checks"]}
    assert "3 past nights on record" in details["duration"]  # of those that published, with a report

    (home / "memstate.toml").write_text(RULE.replace("note", "deal") + strict)
    accept_by_tags(home)


def set_aside(store: Store, scope: str) -> None:
    """Leaves what a run leaves that failed with all rows of a scope."""
    evidence = store.ledger.scan("evidence").filter(pl.col("scope") == scope).collect()
    decided = evidence.select(
        "scope",
        "topic_id",
        pl.concat_list("evidence_id").alias("evidence_ids"),
        kind=pl.lit(SET_ASIDE),
        payload_json=pl.lit('{"table":"evidence","was":null}'),
        reason=pl.lit("step topics failed with it"),
    )
    pending = pending_path(store.home.work("s0"))
    pending.parent.mkdir(parents=True, exist_ok=True)
    project(decided, DECISION).write_parquet(pending)


def accept_by_tags(home: Path) -> None:
    """A run launched with tags, as from the UI; it needs a reason, and publishes nothing here for lack of one."""
    before, job = served(home), build_defs(home).resolve_job_def(NIGHTLY)
    tags = {NOW_TAG: NIGHTS[4], ACCEPT_TAG: "scope_vanished"}
    with dg.DagsterInstance.ephemeral() as instance:
        with pytest.raises(AcceptanceInvalid, match="without a reason"):
            job.execute_in_process(partition_key="s0", instance=instance, tags=tags)
        assert served(home) == before
        done = job.execute_in_process(partition_key="s0", instance=instance, tags=tags | {WHY_TAG: WHY})
    checks = {found.check_name: found for found in done.get_asset_check_evaluations()}
    assert checks["scope_vanished"].metadata["accepted"].value == f"the run's tags: {WHY}"
    assert served(home) != before
    assert accepted(home)[-1] == ("scope_vanished", "the run's tags", WHY)


@pytest.mark.usefixtures("no_settings")
def test_a_scope_whose_rows_are_set_aside_stops_no_night_and_is_named(home: Path) -> None:
    """No input, once accepted, may stop the nights, whatever the gates are set to."""
    (home / "memstate.toml").write_text('[gates]\nscope_vanished = "error"\n')
    set_aside(open_store(home), "user:small")
    done = night(home, 1)
    assert done.code == 0, done.stderr
    failed = {check["name"]: check for check in done.document["checks"] if not check["passed"]}
    assert (list(failed), failed["scope_vanished"]["severity"]) == (["scope_vanished"], "WARN")
    assert "user:small had 2" in failed["scope_vanished"]["detail"]
    assert night(home, 2).code == 0


@pytest.mark.usefixtures("no_settings")
def test_a_measurement_that_fails_refuses_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("a value too large for this machine")

    monkeypatch.setattr(suite, "measure", fail)
    done = maintain(open_store(home), parse_moment(NIGHTS[1])).summary
    warned = {check["name"]: check["found"] for check in done["checks"] if not check["passed"]}
    assert warned == dict.fromkeys(GATES, "OverflowError: a value too large for this machine")
