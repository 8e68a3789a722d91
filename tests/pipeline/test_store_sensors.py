"""The sensors that look at the store, on real stores: evidence that waits, stale snapshots, corrections."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.model.text import parse_moment
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.snapshots import MANIFEST
from memstate_pipeline.run import maintain
from memstate_pipeline.store_sensors import corrections_sensor, pressure_sensor, stale_sensor
from tests.pipeline.cli.small_store import dump, row
from tests.pipeline.conftest import run_memstate
from tests.pipeline.notify.servers import webhook

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
NIGHT = parse_moment("2026-04-06T02:00:00Z")


def opened(home: Path, settings: str) -> Store:
    home.mkdir(parents=True, exist_ok=True)
    (home / "memstate.toml").write_text(settings)
    return open_store(home)


def imported(store: Store, *titles: str, scope: str = "ines") -> None:
    said = {"scope": {"type": "user", "id": scope}}
    rows = [row(title, title) | said for title in titles]
    path = dump(store.home.root / f"{titles[0]}.jsonl", rows)
    import_paths(store.ledger, store.settings, [path], now=NIGHT, run_id=titles[0])


def requested(store: Store) -> list[tuple[str | None, str | None]]:
    found: Any = pressure_sensor(store)(dg.build_sensor_context())
    requests: Iterable[object] = list(found)
    return [(each.partition_key, each.run_key) for each in requests if isinstance(each, dg.RunRequest)]


def test_a_shard_in_which_much_evidence_waits_gets_one_night_ahead_of_schedule(tmp_path: Path) -> None:
    store = opened(tmp_path / "home", "[schedule]\npressure_rows = 3\n[store]\nniceness = 0\n")
    assert requested(store) == []
    imported(store, "Yard", "Boat")
    assert requested(store) == []
    imported(store, "Wall")
    assert requested(store) == [("s0", "pressure/s0/1")] == requested(store), "the same key, so one run"
    maintain(store, NIGHT)
    assert requested(store) == []
    imported(store, "Tree", "Gate", "Pond")
    assert requested(store) == [("s0", "pressure/s0/2")]
    maintain(store, NIGHT + timedelta(days=1))
    assert run_memstate(store.home.root, "rollback").code == 0
    assert requested(store) == [], "what a rollback left waits for the schedule"
    off = opened(tmp_path / "home", "[schedule]\npressure_rows = 0\n")
    assert requested(off) == []
    for file in (store.home.ledger / "evidence").glob("*.parquet"):
        file.write_bytes(b"damaged")
    assert requested(store) == [], "doctor names a ledger that cannot be read"


def test_each_shard_is_counted_by_itself_and_a_damaged_one_is_left_out(tmp_path: Path) -> None:
    store = opened(tmp_path / "home", "[store]\nshards = 2\n[schedule]\npressure_rows = 2\n")
    imported(store, "Yard", "Boat", scope="ines")
    imported(store, "Wall", scope="bo")
    ((busy, _),) = requested(store)
    snapshots = store.home.snapshots(str(busy))
    (snapshots / "1").mkdir(parents=True)
    (snapshots / "CURRENT").write_text("1")
    assert requested(store) == []


def test_a_stale_snapshot_is_notified_of_once_an_hour_until_a_night_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "kept quiet")
    with webhook() as hook:
        settings = f'[notify]\nwebhook_url = "{hook.url}"\nwebhook_secret_env = "HOOK_SECRET"\n'
        settings += "[schedule]\nstale_hours = 30\n[store]\nniceness = 0\n"
        store = opened(tmp_path / "home", settings)
        assert stale(store) == "no served snapshot is stale", "nothing is served yet"
        imported(store, "Yard")
        maintain(store, NIGHT)
        assert stale(store) == "no served snapshot is stale"
        served = current_snapshot(store.home, "s0")
        assert served is not None
        old = served.written_at() - timedelta(hours=31)
        os.utime(served.path / MANIFEST, (old.timestamp(), old.timestamp()))
        assert stale(store) == stale(store) == "stale: s0/1, last night 31 hours ago"
        (document,) = hook.documents
        assert (document["event"], document["shard"], document["snapshot"]) == ("snapshot_stale", "s0", "s0/1")
        assert (
            document["problems"][0]["message"]
            == f"s0/1 is served; the last night published at {old:%Y-%m-%dT%H:%M:%S}Z"
        )
        topic = run_memstate(store.home.root, "query", "Yard", "--json").document["candidates"][0]["topic_id"]
        assert run_memstate(store.home.root, "pin", topic).code == 0
        assert stale(store) == "stale: s0/2, last night 31 hours ago", "a correction is no night"
        assert run_memstate(store.home.root, "maintain", HOOK_SECRET="kept quiet").code == 0
        assert stale(store) == "no served snapshot is stale"
        assert hook.events == ["snapshot_stale", "fault_ended"]


def stale(store: Store) -> str | None:
    found = stale_sensor(store)(dg.build_sensor_context())
    assert isinstance(found, dg.SkipReason)
    return found.skip_message


def test_corrections_are_shown_once_with_their_page(tmp_path: Path) -> None:
    store = opened(tmp_path / "home", "[store]\nniceness = 0\n")
    sensor = corrections_sensor(store)
    first: Any = sensor(dg.build_sensor_context())
    assert (first.asset_events, first.skip_reason.skip_message) == ([], "no new correction")
    imported(store, "Yard")
    maintain(store, NIGHT)
    topic = run_memstate(store.home.root, "query", "Yard", "--json").document["candidates"][0]["topic_id"]
    pinned = run_memstate(store.home.root, "pin", topic, "--json").document
    found: Any = sensor(dg.build_sensor_context(cursor=first.cursor))
    (event,) = found.asset_events
    shown = {name: value.value for name, value in event.metadata.items()}
    assert (event.asset_key.to_user_string(), event.partition) == ("snapshot", "s0")
    assert (shown["page"], shown["run_id"], shown["decisions/pinned"]) == (*pinned["reports"], pinned["run_id"], 1)
    Path(pinned["reports"][0]).with_suffix(".json").write_text("damaged")
    again: Any = sensor(dg.build_sensor_context(cursor=found.cursor))
    assert (again.asset_events, again.cursor) == ([], found.cursor)
    damaged: Any = sensor(dg.build_sensor_context())
    assert [sorted(each.metadata) for each in damaged.asset_events] == [["open", "page"]]
