"""A store over several nights: shards, lost snapshots, a bloated graph, old snapshots pruned."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from memstate_core.run.store import open_store
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow

ROW = '{"scope": {"type": "user", "id": "u%d"}, "title": "Yard %d", "fields": [{"name": "gate", "value": "%s"}]}\n'
COMPACTING = """
import sys
from memstate_core.run import begin
begin.COMPACT_AT = 0.0
sys.argv = ["memstate", *sys.argv[1:]]
from memstate_pipeline.cli.main import main
main()
"""


def night(home: Path, gate: str = "") -> dict[str, object]:
    """One night after the import of a new value for the gate of eight users' yards."""
    if gate:
        dump = home.parent / f"{gate}.jsonl"
        dump.write_text("".join(ROW % (user, user, gate) for user in range(8)))
        answer = run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z")
        assert answer.code == 0, answer.stderr
    answer = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert answer.code == 0, answer.stderr
    return dict(answer.document)


@dataclass(frozen=True)
class First:
    """A store after its first night, and the JSON of that night."""

    home: Path
    summary: dict[str, object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> First:
    """The first night of all tests with one shard; they copy it."""
    home = tmp_path_factory.mktemp("care") / "home"
    return First(home, night(home, "shut"))


@pytest.fixture
def first(made: First, tmp_path: Path) -> First:
    return First(Path(shutil.copytree(made.home, tmp_path / "home")), made.summary)


@pytest.fixture
def home(first: First) -> Path:
    return first.home


def test_shards_share_the_work_and_answer_as_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    summary = night(home, "shut")
    assert summary["snapshot"] == "s0/1,s1/1"
    assert {part["shard"] for part in summary["shards"]} == {"s0", "s1"}
    assert all(part["counts"]["topics_created"] for part in summary["shards"])
    assert summary["counts"]["topics_created"] == 8
    status = run_memstate(home, "status", "--json").document
    assert (status["state_hash"], status["waiting"]) == (summary["state_hash"], 0)
    assert len(run_memstate(home, "export").stdout.splitlines()) == 8
    assert run_memstate(home, "verify").code == 0


def test_lost_snapshots_are_folded_again_from_the_ledger(first: First) -> None:
    home, before = first.home, first.summary
    shutil.rmtree(home / "snapshots")
    after = night(home)
    assert after["state_hash"] == before["state_hash"]
    assert after["counts"]["evidence"] == after["counts"]["topics_created"] == 0


def test_a_bloated_graph_is_written_anew_with_the_same_state(first: First) -> None:
    home, before = first.home, first.summary
    command = ["-c", COMPACTING, "--home", str(home), "maintain", "--now", NIGHT]
    answer = warm.run(command, clean_environment())
    assert answer.returncode == 0, answer.stderr
    assert run_memstate(home, "status", "--json").document["state_hash"] == before["state_hash"]
    assert run_memstate(home, "verify").code == 0


def test_only_the_last_snapshots_are_kept(home: Path) -> None:
    (home / "memstate.toml").write_text("[store]\nkeep_snapshots = 2\n")
    for gate in ("open", "ajar"):
        night(home, gate)
    kept = {entry.name for entry in (home / "snapshots" / "s0").iterdir()}
    assert kept == {"2", "3", "CURRENT"}


def test_evidence_that_moves_to_a_later_owner_is_recorded_and_the_old_id_answers(home: Path) -> None:
    (alias,) = [
        topic["id"] for topic in run_memstate(home, "export", "--json").document["topics"] if topic["title"] == "Yard 1"
    ]
    dump = home.parent / "keyed.jsonl"
    dump.write_text('{"scope": {"type": "user", "id": "u1"}, "topic_key": "first", "title": "Yard 1"}\n')
    assert run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z").code == 0
    night(home)
    owner = run_memstate(home, "topic", alias, "--json").document["id"]
    transitions = open_store(home).ledger.scan("transitions").filter(pl.col("kind") == "moved").collect()
    assert owner != alias
    assert transitions["topic_id"].to_list() == [owner]
    assert alias in transitions["payload_json"][0]


def test_evidence_that_names_a_topic_of_another_scope_is_refused_and_reported(home: Path) -> None:
    foreign = run_memstate(home, "export", "--json").document["topics"][0]
    dump = home.parent / "foreign.jsonl"
    dump.write_text(f'{{"scope": {{"type": "user", "id": "thief"}}, "topic_id": "{foreign["id"]}", "title": "Mine"}}\n')
    assert run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z").code == 0
    night(home)
    problems = run_memstate(home, "report", "--json").document["problems"]
    assert [problem["kind"] for problem in problems] == ["refused_placement"]
    assert "belongs to another scope" in problems[0]["detail"]
    assert run_memstate(home, "topic", foreign["id"], "--json").document["title"] == foreign["title"]
