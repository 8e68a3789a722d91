"""A failed condition stops the run before it publishes; the served snapshot stays."""

import json
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.run.store import open_store
from memstate_pipeline.instance import dagster_instance
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow

DAMAGED = """
import sys
import polars as pl
from memstate_core.state.graph import REVISION, open_graph
from memstate_pipeline.assets import forget as assets

sound = assets.forget

def forget(store, run, new):
    result = sound(store, run, new)
    if run.facts.shard != "s0":
        return result
    with open_graph(run.graph) as graph:
        rows = graph.read(REVISION, ["id"]).with_columns(evidence_ids=pl.lit(["nobody said so"]))
        graph.update(REVISION, rows)
    return result

assets.forget = forget
sys.argv = ["memstate", "--home", sys.argv[1], "maintain", "--now", sys.argv[2], "--json"]
from memstate_pipeline.cli.main import main
main()
"""
"""A night whose ladder step removes the evidence of every value of the working graph of the first shard."""


def other_shards(home: Path) -> list[bool]:
    """Whether the check of each night, oldest first, found that the other shards had published."""
    key = dg.AssetCheckKey(dg.AssetKey("maintenance_report"), "other_shards_published")
    with dagster_instance(open_store(home, {}).home) as instance:
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
    ended = {"SUCCEEDED": True, "FAILED": False}
    return [ended[status] for record in reversed(records) if (status := record.status.value) in ended]


def test_a_failed_check_exits_4_and_publishes_nothing(tmp_path: Path) -> None:
    home, dump = tmp_path / "home", tmp_path / "one.jsonl"
    dump.write_text('{"title": "Yard", "fields": [{"name": "gate", "value": "shut"}]}\n')
    assert run_memstate(home, "import", str(dump)).code == 0
    answer = warm.run(["-c", DAMAGED, str(home), NIGHT], clean_environment())
    assert answer.returncode == 4, answer.stderr
    assert "C4_provenance_preservation" in answer.stdout
    assert not [name for name in ("C1_", "C2_", "C3_", "C5_", "C6_") if name in answer.stdout]
    assert run_memstate(home, "status", "--json").document["snapshot"] is None
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0


def test_a_failed_shard_keeps_no_other_from_its_night(tmp_path: Path) -> None:
    home, dump = tmp_path / "home", tmp_path / "many.jsonl"
    home.mkdir()
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    scopes = [{"type": "user", "id": f"u{number}"} for number in range(8)]
    rows = [{"title": "Yard", "scope": scope, "fields": [{"name": "gate", "value": "shut"}]} for scope in scopes]
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run_memstate(home, "import", str(dump)).code == 0
    answer = warm.run(["-c", DAMAGED, str(home), NIGHT], clean_environment())
    assert answer.returncode == 4, answer.stderr
    error = json.loads(answer.stdout)["error"]
    assert (error["type"], error["failed"], error["published"]) == ("ShardsFailed", {"s0": "CheckRefused"}, ["s1/1"])
    assert "C4_provenance_preservation" in error["message"]
    assert other_shards(home) == [False]
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s1/1"
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    assert other_shards(home) == [False, True, True]
