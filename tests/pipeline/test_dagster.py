"""The code location: assets in their groups, the job, the schedule, the sensor."""

import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from memstate_pipeline.assets.common import WRITES_TAG
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.resources import NOW_TAG

GROUPS = {
    "evidence": "ingest",
    "placements": "ingest",
    "topics": "topics",
    "topic_embeddings": "topics",
    "duplicate_pairs": "revise",
    "merges": "revise",
    "dependency_review": "revise",
    "salience": "forget",
    "forgetting": "forget",
    "snapshot": "publish",
    "maintenance_report": "publish",
}
WRITES = {
    "ingest": "ledger", "topics": "working_graph", "revise": "working_graph", "forget": "working_graph",
    "publish": "snapshot",
}  # fmt: skip
ROOT = Path(__file__).parents[2]


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    return build_defs(tmp_path)


def specs(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}


def test_assets_are_in_their_groups(definitions: dg.Definitions) -> None:
    assert {name: spec.group_name for name, spec in specs(definitions).items()} == GROUPS


def test_every_asset_is_partitioned_by_shard(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text("[store]\nshards = 3\n")
    for name in GROUPS:
        spec = specs(build_defs(tmp_path))[name]
        assert spec.partitions_def is not None
        assert spec.partitions_def.get_partition_keys() == ["s0", "s1", "s2"]


def test_the_job_is_one_line_through_all_assets(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_job_def("nightly_maintenance").asset_layer.asset_graph
    assert set(GROUPS) == {key.to_user_string() for key in graph.executable_asset_keys}


def test_the_snapshot_goes_stale(definitions: dg.Definitions) -> None:
    fresh = {name for name, spec in specs(definitions).items() if spec.freshness_policy}
    assert fresh == {"snapshot"}


def test_each_of_several_shards_goes_stale_and_is_checked_by_itself(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text("[store]\nshards = 2\n")
    definitions, shards = build_defs(tmp_path), {"served/s0", "served/s1"}
    found = specs(definitions)
    assert {name for name, spec in found.items() if spec.freshness_policy} == shards
    assert found.keys() == GROUPS.keys() | shards
    checks = definitions.resolve_asset_graph().asset_check_keys
    assert {key.asset_key.to_user_string() for key in checks if key.name == "last_night_published"} == shards
    job = definitions.resolve_job_def("nightly_maintenance").asset_layer.asset_graph
    assert {key.to_user_string() for key in job.executable_asset_keys} == GROUPS.keys(), "no step makes them"
    assert definitions.resolve_sensor_def("shards").default_status is dg.DefaultSensorStatus.RUNNING


def test_assets_have_owners_tags_kinds_descriptions_and_columns(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text('[ui]\nowners = ["team:night-shift", "ops@example.org"]\n')
    for name, spec in specs(build_defs(tmp_path)).items():
        assert [*spec.owners] == ["team:night-shift", "ops@example.org"]
        assert spec.kinds
        assert spec.description
        assert spec.tags[WRITES_TAG] == WRITES[spec.group_name or ""] or name == "maintenance_report"
        assert ("dagster/column_schema" in spec.metadata) == (name != "maintenance_report")


def test_the_schedule_is_on_and_passes_its_tick_as_the_clock(definitions: dg.Definitions) -> None:
    schedule = definitions.resolve_schedule_def("nightly")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 2 * * *", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    at = datetime(2026, 4, 6, 2, tzinfo=UTC)
    context = dg.build_schedule_context(scheduled_execution_time=at, repository_def=definitions.get_repository_def())
    (request,) = schedule.evaluate_tick(context).run_requests or []
    assert (request.partition_key, request.tags[NOW_TAG]) == ("s0", at.isoformat())


def test_the_schedule_keeps_to_the_time_zone_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text('[schedule]\ntime_zone = "Europe/Berlin"\n')
    definitions = build_defs(tmp_path)
    schedule = definitions.resolve_schedule_def("nightly")
    assert schedule.execution_timezone == "Europe/Berlin"
    at = datetime(2026, 7, 6, 2, tzinfo=ZoneInfo("Europe/Berlin"))
    context = dg.build_schedule_context(scheduled_execution_time=at, repository_def=definitions.get_repository_def())
    (request,) = schedule.evaluate_tick(context).run_requests or []
    assert request.tags[NOW_TAG] == "2026-07-06T00:00:00+00:00"


def test_the_sensor_asks_once_for_the_same_files(definitions: dg.Definitions, tmp_path: Path) -> None:
    sensor = definitions.resolve_sensor_def("inbox")
    assert isinstance(sensor(dg.build_sensor_context()), dg.SkipReason)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.jsonl").write_text("{}\n")
    being_written = sensor(dg.build_sensor_context())
    assert isinstance(being_written, dg.SkipReason)
    assert being_written.skip_message == "being written: a.jsonl"
    os.utime(tmp_path / "inbox" / "a.jsonl", (0, 0))
    first, again = sensor(dg.build_sensor_context()), sensor(dg.build_sensor_context())
    assert isinstance(first, dg.RunRequest)
    assert isinstance(again, dg.RunRequest)
    assert first.run_key == again.run_key
    (tmp_path / "inbox" / "b.jsonl").write_text("{}\n")
    os.utime(tmp_path / "inbox" / "b.jsonl", (0, 0))
    later = sensor(dg.build_sensor_context())
    assert isinstance(later, dg.RunRequest)
    assert later.run_key != first.run_key


def test_workspace_and_project_file_name_the_same_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    module = project["tool"]["dg"]["project"]["code_location_target_module"]
    assert f"python_module: {module}" in (ROOT / "workspace.yaml").read_text()
