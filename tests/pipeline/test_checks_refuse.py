"""A failed condition stops the run before it publishes; the served snapshot stays."""

import asyncio
import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions import freshness_evaluator
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.loader import LoadingContextForTest

from memstate_core.run.store import open_store
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.shards import shard_asset, shards_sensor
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


def verdicts(home: Path, cursor: str | None = None) -> tuple[dict[str, tuple[bool, str]], str]:
    """What the sensor records of each shard: whether its last night published, and why not; and its cursor."""
    store = open_store(home, {})
    (sensor,) = shards_sensor(store)
    with dagster_instance(store.home) as instance:
        tick: Any = sensor(dg.build_sensor_context(instance, cursor))
    events = {event.asset_key.path[-1]: event for event in tick.asset_events}
    return {
        shard: (event.passed, str(event.metadata["failed checks"].value) if "failed checks" in event.metadata else "")
        for shard, event in events.items()
    }, tick.cursor


def freshness(home: Path, monkeypatch: pytest.MonkeyPatch, hours: float) -> dict[str, FreshnessState]:
    """How Dagster's daemon judges the assets with a freshness policy some hours after the last shard published."""
    graph = build_defs(home).resolve_asset_graph()
    nodes = {key.to_user_string(): graph.get(key) for key in graph.get_all_asset_keys()}
    with dagster_instance(open_store(home, {}).home) as instance:
        published = instance.get_latest_materialization_event(shard_asset("s1"))
        assert published is not None
        monkeypatch.setattr(freshness_evaluator, "get_current_timestamp", lambda: published.timestamp + hours * 3600)
        judge = freshness_evaluator.TimeWindowFreshnessPolicyEvaluator().evaluate_freshness
        policies = {name: node for name, node in nodes.items() if node.freshness_policy is not None}
        return {name: asyncio.run(judge(LoadingContextForTest(instance), node)) for name, node in policies.items()}


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


def test_a_failed_shard_keeps_no_other_from_its_night_and_hides_behind_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    failing, cursor = verdicts(home)
    assert failing == {"s0": (False, "C4_provenance_preservation"), "s1": (True, "")}
    assert verdicts(home, cursor) == ({}, cursor), "a verdict is recorded once"
    fresh, unknown = FreshnessState.PASS, FreshnessState.UNKNOWN
    assert freshness(home, monkeypatch, 1) == {"served/s0": unknown, "served/s1": fresh}
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s1/1"
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    sound, cursor = verdicts(home, cursor)
    assert sound == {"s0": (True, ""), "s1": (True, "")}
    assert freshness(home, monkeypatch, 1) == {"served/s0": fresh, "served/s1": fresh}
    just_before = 36 - 0.01 / 3600
    late = {"served/s0": FreshnessState.FAIL, "served/s1": FreshnessState.WARN}
    assert freshness(home, monkeypatch, just_before) == late, "s0 published before s1"
    (home / "snapshots" / "s0" / "1" / "manifest.json").write_bytes(b"damaged")
    assert verdicts(home, cursor)[0] == {"s0": (False, "")}, "what it serves cannot be read"
