"""Accesses from the command line to the night that counts them: --record, feedback, and plans that include them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.model.errors import PlanStale
from memstate_core.model.text import parse_moment
from memstate_core.night.clone import cloned
from memstate_core.night.plan_file import Plan, read_plan, write_plan
from memstate_core.run.store import open_store
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.planning import apply_plan, plan_on
from memstate_pipeline.run import maintain
from tests.pipeline.conftest import NIGHT, Memstate, run_memstate

NOW = parse_moment(NIGHT) + timedelta(days=1)
LATER = "2026-04-06T09:00:00Z"
ROWS: list[dict[str, Any]] = [
    {"topic_key": "yard", "title": "Old Ferry Yard", "fields": [{"name": "gate", "value": "shut"}]},
    {"topic_key": "tree", "title": "Serviceberry", "observed_at": "2023-04-01T00:00:00Z"},
]


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a fresh topic and one that has been archived; tests copy it."""
    home = tmp_path_factory.mktemp("feedback") / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[policy]\ntopic_count_soft_limit = 0\n")
    said = {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-01T00:00:00Z"}
    (home / "dump.jsonl").write_text("".join(json.dumps(said | row) + "\n" for row in ROWS))
    assert run_memstate(home, "import", str(home / "dump.jsonl"), "--now", "2026-04-05T00:00:00Z").code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    return home


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_night, tmp_path / "home"))


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


def topics(home: Path) -> dict[str, dict[str, Any]]:
    """Records by the first word of the title."""
    records = run_memstate(home, "export", "--json").document["topics"]
    return {record["title"].split()[0]: record for record in records}


def noted(home: Path) -> list[dict[str, Any]]:
    """The recorded accesses that are not yet collected, without their checksums."""
    lines = [json.loads(line) for path in (home / "accesses").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [{key: line[key] for key in line.keys() - {"crc32"}} for line in lines if "topic_id" in line]


def evidence_counts(home: Path) -> dict[str, Any]:
    """What the newest materialization of the asset `evidence` shows."""
    with dagster_instance(open_store(home).home) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("evidence"))
    assert event is not None
    assert event.asset_materialization is not None
    return {name: shown.value for name, shown in event.asset_materialization.metadata.items()}


def test_reading_records_no_access_without_the_option(home: Path, memstate: Memstate) -> None:
    yard = topics(home)["Old"]["id"]
    for command in (("query", "the yard"), ("topic", yard)):
        answer = memstate(*command, "--json")
        assert answer.code == 0
        assert "recorded" not in answer.document
    assert not (home / "accesses").exists()


def test_query_records_the_candidates(home: Path, memstate: Memstate) -> None:
    answer = memstate("query", "Is the gate of the ferry yard shut?", "--record", "--now", LATER, "--json").document
    returned = [candidate["topic_id"] for candidate in answer["candidates"]]
    assert returned
    assert answer["recorded"] | {"segment": None} == {
        "topic_ids": returned,
        "fields": None,
        "failed": False,
        "at": LATER,
        "source": "cli",
        "segment": None,
    }
    assert (home / "accesses" / answer["recorded"]["segment"]).exists()
    assert noted(home) == [
        {"topic_id": topic_id, "at": LATER, "source": "cli", "scope": "user:ines"} for topic_id in returned
    ]


def test_an_answer_without_topics_records_nothing(home: Path, memstate: Memstate) -> None:
    answer = memstate("query", "the yard", "--scope", "user:nobody", "--record", "--json").document
    assert (answer["recorded"]["topic_ids"], answer["recorded"]["segment"]) == ([], None)
    assert noted(home) == []


def test_an_archived_topic_that_was_accessed_is_restored(home: Path, memstate: Memstate) -> None:
    tree = topics(home)["Serviceberry"]
    assert tree["state"] == "archived"
    human = memstate("topic", tree["id"], "--record", "--now", LATER)
    assert "recorded as accessed: 1 topic; the next run counts it" in human.stdout
    done = memstate("maintain", "--now", "2026-04-07T02:00:00Z", "--json").document
    assert done["counts"]["restored"] == 1
    assert topics(home)["Serviceberry"]["state"] == "active"
    counts = evidence_counts(home)
    assert (counts["accesses"], counts["accesses_quarantined"]) == (1, 0)
    assert noted(home) == []


def test_feedback_names_topic_fields_and_verdict(home: Path, memstate: Memstate) -> None:
    yard = topics(home)["Old"]["id"]
    answer = memstate("feedback", yard, "--field", "gate", "--failed", "--now", LATER, "--json")
    assert answer.code == 0, answer.stderr
    recorded = answer.document["recorded"]
    assert (recorded["topic_ids"], recorded["fields"], recorded["failed"]) == ([yard], ["gate"], True)
    assert "recorded as accessed: 1 topic" in memstate("feedback", yard, "--used", "--now", LATER).stdout
    assert memstate("topic", yard, "--record", "--failed", "--now", LATER).code == 0
    whole = {"topic_id": yard, "at": LATER, "source": "cli", "scope": "user:ines"}
    expected = [whole, whole | {"failed": True}, whole | {"failed": True, "fields": ["gate"]}]
    assert sorted(noted(home), key=len) == expected
    (home / "accesses" / "bad.jsonl").write_text("broken\n")
    assert memstate("maintain", "--now", "2026-04-07T02:00:00Z").code == 0
    counts = evidence_counts(home)
    assert (counts["accesses"], counts["accesses_quarantined"], counts["quarantined"]) == (3, 1, 0)
    assert topics(home)["Old"]["failed_salience"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("feedback", "YARD"), 2, "Missing option '--used'"),
        (("feedback", "YARD", "--used", "--field", "hinge"), 2, "no field 'hinge': expected some of gate"),
        (("feedback", "YARD", "--used", "--now", "noon"), 2, "expected ISO 8601"),
        (("feedback", "nothing", "--used"), 1, "no topic has the id 'nothing'"),
        (("topic", "YARD", "--failed"), 2, "it needs --record"),
        (("query", "yard", "--now", LATER), 2, "it needs --record"),
    ],
)
def test_wrong_feedback_is_refused(
    arguments: tuple[str, ...], code: int, said: str, home: Path, memstate: Memstate
) -> None:
    yard = topics(home)["Old"]["id"]
    answer = memstate(*(yard if word == "YARD" else word for word in arguments), "--json")
    assert answer.code == code
    assert said in answer.document["error"]["message"]
    assert not (home / "accesses").exists()


def test_feedback_on_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    answer = run_memstate(tmp_path / "home", "feedback", "x", "--used", "--json")
    assert (answer.code, answer.document["error"]["type"]) == (1, "StoreNotFound")
    assert not (tmp_path / "home").exists()


# Plans


def note(home: Path, name: str) -> None:
    tree = topics(home)["Serviceberry"]["id"]
    with AccessJournal(home / "accesses", name) as journal:
        journal.record(tree, parse_moment(LATER), "server")


def collect(home: Path) -> None:
    store = open_store(home)
    collect_accesses(store.home, store.ledger, store.settings, NOW, "earlier")


def planned(home: Path, path: Path) -> Plan:
    with cloned(open_store(home)) as clone:
        made = plan_on(clone, NOW)
    write_plan(made, path)
    return made


def files_of(home: Path) -> dict[str, bytes]:
    files = [path for path in (home / "accesses").rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


def test_a_plan_includes_recorded_accesses_and_applying_it_gives_the_same_state(home: Path, tmp_path: Path) -> None:
    note(home, "a")
    before = files_of(home)
    with AccessJournal(home / "accesses", "live") as live:
        live.record("somebody", NOW, "server")
        live.flush()
        plan = planned(home, tmp_path / "plan.json")
        assert list(plan.accesses) == ["a.jsonl"]
        assert plan.summary["restored"] == 1
        assert plan.accesses_version is None
        done = apply_plan(open_store(home), tmp_path / "plan.json")
    assert done.summary["state_hash"] == plan.result["s0"].state_hash
    assert before.keys() == {"accesses/a.jsonl"}
    assert set(files_of(home)) == {"accesses/processed/a.jsonl", "accesses/live.jsonl"}


@pytest.fixture(scope="module")
def made_plan(first_night: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has a recorded access, and the plan of its next night; tests copy it."""
    folder = tmp_path_factory.mktemp("planned")
    shutil.copytree(first_night, folder / "home")
    note(folder / "home", "a")
    before = files_of(folder / "home")
    planned(folder / "home", folder / "plan.json")
    assert files_of(folder / "home") == before  # planning leaves the journal as it was
    return folder


MOVES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another segment": (lambda home: note(home, "b"), r"accesses/b.jsonl: found [0-9a-f]{64}, expected missing"),
    "a changed segment": (
        lambda home: (home / "accesses" / "a.jsonl").write_text("{}\n"),
        r"accesses/a.jsonl: found [0-9a-f]{64}, expected [0-9a-f]{64}",
    ),
    "collected meanwhile": (collect, r"accesses version: found 0, expected nothing"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_plan_is_refused_after_the_accesses_have_changed(move: str, made_plan: Path, tmp_path: Path) -> None:
    make, answer = MOVES[move]
    home = Path(shutil.copytree(made_plan / "home", tmp_path / "home"))
    make(home)
    before = files_of(home)
    with pytest.raises(PlanStale, match=answer):
        apply_plan(open_store(home), made_plan / "plan.json")
    assert files_of(home) == before


def test_planning_leaves_the_journal_as_it_was(made_plan: Path, home: Path) -> None:
    note(home, "a")
    assert files_of(made_plan / "home") == files_of(home)
    assert read_plan(made_plan / "plan.json").accesses.keys() == {"a.jsonl"}


def test_a_second_night_does_not_count_an_access_again(home: Path) -> None:
    note(home, "a")
    store = open_store(home)
    first = maintain(store, NOW).summary
    segment = home / "accesses" / "processed" / "a.jsonl"
    shutil.copy(segment, home / "accesses" / "again.jsonl")
    second = maintain(store, NOW).summary
    assert second["state_hash"] == first["state_hash"]
    assert store.ledger.count("accesses") == 1
