"""One night of the bundled sample through Dagster: its JSON and its results."""

import json
from pathlib import Path
from typing import Any

import pytest

from memstate_core.night.checks.suite import CONDITIONS
from memstate_core.night.gates.verdict import GATES
from tests.pipeline.conftest import NIGHT, Memstate, run_memstate

pytestmark = pytest.mark.slow

COUNTS = [
    *("evidence", "accesses", "topics_created", "revisions", "topics_embedded", "merges"),
    *("restored", "summarised", "detached", "archived", "attached", "expanded"),
]
STEPS = [
    *("evidence", "placements", "topics", "topic_embeddings", "duplicate_pairs", "merges"),
    *("dependency_review", "salience", "forgetting", "snapshot"),
]
TWINS = {"tomás reis", "kestrel mini 2", "fernwick nursery"}


def exported(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run_memstate(home, "export").stdout.splitlines()]


def test_the_import_counts_every_record(demo_answer: dict[str, Any]) -> None:
    answer = demo_answer["import"]
    assert answer["read"] == answer["accepted"] + answer["duplicate"] + answer["quarantined"] == 201
    assert (answer["duplicate"], answer["quarantined"]) == (3, 3)


def test_the_night_keeps_its_contract(demo_answer: dict[str, Any]) -> None:
    night = demo_answer["maintain"]
    assert list(night["counts"]) == COUNTS
    assert list(night["seconds"]) == STEPS
    assert [check["name"] for check in night["checks"]] == [*CONDITIONS, *GATES]
    assert all(check["passed"] for check in night["checks"])
    warning = {check["name"] for check in night["checks"] if check["severity"] == "WARN"}
    assert warning == GATES.keys() - {"shrinkage", "recall"}
    assert night["snapshot"] == "s0/1"


def test_only_topics_that_agree_are_merged(demo_home: Path, demo_answer: dict[str, Any]) -> None:
    topics = exported(demo_home)
    merged = {topic["title"] for topic in topics if topic["merged_from"]}
    assert {" ".join(title.lower().split()) for title in merged} == TWINS
    assert demo_answer["maintain"]["counts"]["merges"] == 3
    listed = run_memstate(demo_home, "merges", "--json").document["merges"]
    assert {merge["comparison"]["agree"][0] for merge in listed} == {"title"}
    assert all(merge["reading"].startswith("title") for merge in listed), listed
    assert sum(topic["title"] == "Jonas Falk" and topic["state"] == "active" for topic in topics) == 2


def test_every_accepted_record_is_evidence_of_one_living_topic(demo_home: Path) -> None:
    listed = [name for topic in exported(demo_home) if not topic["merged_into"] for name in topic["observation_ids"]]
    assert len(listed) == len(set(listed)) == 195


def test_a_late_record_lands_in_its_place(demo_home: Path) -> None:
    (yard,) = [topic for topic in exported(demo_home) if topic["title"] == "Old Ferry Yard"]
    budgets = [(revision["valid_from"][:10], revision["value"]) for revision in yard["fields"]["budget_eur"]["history"]]
    assert budgets == sorted(budgets, reverse=True)
    assert budgets[0][1] == 176_000
    assert budgets[-1][1] == 150_000


def test_a_tombstone_answers_with_its_survivor(demo_home: Path, on_demo: Memstate) -> None:
    dropped = next(topic for topic in exported(demo_home) if topic["merged_into"])
    answer = on_demo("topic", dropped["id"], "--json")
    assert answer.document["id"] == dropped["merged_into"]
    assert dropped["id"] in answer.document["resolved_from"]


def test_the_second_night_changes_nothing(tmp_path: Path, demo_home: Path, demo_answer: dict[str, Any]) -> None:
    import shutil

    home = tmp_path / "home"
    shutil.copytree(demo_home, home)
    answer = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert answer.code == 0, answer.stderr
    assert answer.document["state_hash"] == demo_answer["maintain"]["state_hash"]
    assert not any(answer.document["counts"].values())
    assert answer.document["previous_snapshot"] == "s0/1"


def test_the_report_has_a_page_and_its_json(demo_home: Path, on_demo: Memstate) -> None:
    document = on_demo("report", "--json").document
    assert {" ".join(row["dropped_title"].lower().split()) for row in document["merges"]} == TWINS
    (page,) = (demo_home / "reports").glob("*-s0.html")
    assert "Published snapshot s0/1" in page.read_text()


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("now", ["0001-01-02T00:00:00Z", "1600-01-01T00:00:00Z"])
def test_a_night_dated_long_before_its_evidence_publishes_what_verify_and_rebuild_confirm(
    memstate: Memstate, tmp_path: Path, now: str
) -> None:
    rows = [{"title": "Yard", "observed_at": "2020-01-01", "fields": [{"name": "gate", "value": "shut"}]}]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert memstate("import", str(tmp_path / "dump.jsonl"), "--now", "2020-01-02").code == 0
    night = memstate("maintain", "--now", now, "--json")
    assert night.code == 0, night.stderr
    assert memstate("verify").code == 0
    rebuilt = memstate("rebuild", "--json")
    assert (rebuilt.code, rebuilt.document["state_hash"]) == (0, night.document["state_hash"])


def test_verify_finds_nothing(on_demo: Memstate) -> None:
    answer = on_demo("verify", "--json")
    assert answer.code == 0, answer.stdout
    assert {row["name"] for row in answer.document["verdicts"]} >= {"file digests", "L3 rebuild", "C1_query_soundness"}


def test_the_inbox_is_read_by_the_night_and_kept(memstate: Memstate, tmp_path: Path) -> None:
    inbox = tmp_path / "home" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "one.jsonl").write_text('{"title": "Harbour plan", "fields": [{"name": "status", "value": "open"}]}\n')
    (inbox / "broken.jsonl.gz").write_bytes(b"\x1f\x8bnot really")
    answer = memstate("maintain", "--now", "2099-01-01T00:00:00Z", "--json")
    assert answer.code == 0, answer.stderr
    assert answer.document["ingest"]["accepted"] == 1
    assert "broken.jsonl.gz" in answer.document["warnings"][0]
    assert (inbox / "processed" / "one.jsonl").exists()
    assert (inbox / "failed" / "broken.jsonl.gz").exists()
