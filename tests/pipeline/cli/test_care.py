"""A store over several nights: shards, lost snapshots, a bloated graph, old snapshots pruned."""

import shutil
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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_shards_share_the_work_and_answer_as_one(home: Path) -> None:
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


def test_lost_snapshots_are_folded_again_from_the_ledger(home: Path) -> None:
    before = night(home, "shut")
    shutil.rmtree(home / "snapshots")
    after = night(home)
    assert after["state_hash"] == before["state_hash"]
    assert after["counts"]["evidence"] == after["counts"]["topics_created"] == 0


def test_a_bloated_graph_is_written_anew_with_the_same_state(home: Path) -> None:
    before = night(home, "shut")
    command = ["-c", COMPACTING, "--home", str(home), "maintain", "--now", NIGHT]
    answer = warm.run(command, clean_environment())
    assert answer.returncode == 0, answer.stderr
    assert run_memstate(home, "status", "--json").document["state_hash"] == before["state_hash"]
    assert run_memstate(home, "verify").code == 0


def test_only_the_last_snapshots_are_kept(home: Path) -> None:
    (home / "memstate.toml").write_text("[store]\nkeep_snapshots = 2\n")
    for gate in ("shut", "open", "ajar"):
        night(home, gate)
    kept = {entry.name for entry in (home / "snapshots" / "s0").iterdir()}
    assert kept == {"2", "3", "CURRENT"}


def test_evidence_that_moves_to_a_later_owner_is_recorded_and_the_old_id_answers(home: Path) -> None:
    night(home, "shut")
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
    night(home, "shut")
    foreign = run_memstate(home, "export", "--json").document["topics"][0]
    dump = home.parent / "foreign.jsonl"
    dump.write_text(f'{{"scope": {{"type": "user", "id": "thief"}}, "topic_id": "{foreign["id"]}", "title": "Mine"}}\n')
    assert run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z").code == 0
    night(home)
    problems = run_memstate(home, "report", "--json").document["problems"]
    assert [problem["kind"] for problem in problems] == ["refused_placement"]
    assert "belongs to another scope" in problems[0]["detail"]
    assert run_memstate(home, "topic", foreign["id"], "--json").document["title"] == foreign["title"]
