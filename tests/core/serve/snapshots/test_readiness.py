"""`/readyz`: what is served and how old it is, the run that made it, what went wrong since."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memstate_core.model.text import parse_moment
from memstate_core.night.checkout.note import Note, write_checkout
from memstate_core.policy.settings import Settings, StoreSettings
from memstate_core.run.run import Run, RunFacts
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.serve.snapshots.readiness import readiness
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home
from memstate_core.storage.head import State
from tests.core.serve.conftest import Publish, harbour, served, serving_process
from tests.core.serve.http.test_metrics import value
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow

HOUR = 3600.0


def begun(home: Home, number: int, checks: list[dict[str, Any]] | None = None) -> Run:
    """A run that has not published, as its first step and its checks leave it."""
    facts = RunFacts(
        run_id=f"run-{number}", shard="s0", shards=1, now=datetime(2026, 7, 1, tzinfo=UTC), number=number, base=1,
        evidence_version=None, transitions_version=None, fresh_graph=False, embedding_model="m", policy={},
    )  # fmt: skip
    scratch = home.work("s0")
    (scratch / "notes").mkdir(parents=True)
    (scratch / "run.json").write_bytes(msgspec.json.encode(facts))
    if checks is not None:
        (scratch / "checks.json").write_bytes(msgspec.json.encode(checks))
    return Run.load(scratch)


@pytest.fixture
def store(tmp_path: Path, publish: Publish) -> Store:
    return publish(tmp_path / "home", harbour)


def response(store: Store, after: float = 0.0, max_age: float | None = None) -> dict[str, Any]:
    """What is said so many seconds after the snapshot was written."""
    serving = Serving(store)
    serving.refresh()
    generation = serving.current
    assert generation is not None
    try:
        now = generation.published_at + timedelta(seconds=after)
        return readiness(store, generation, None, now, max_age)
    finally:
        serving.close()


def test_a_checkout_says_which_state_it_has(store: Store) -> None:
    url, state = "s3://bucket/store", State(7, 3, "0" * 64, None, 0, datetime(2026, 7, 1, tzinfo=UTC))
    assert "checkout" not in response(store)
    kept = Store(store.home, store.settings.model_copy(update={"store": StoreSettings(url=url)}))
    assert "checkout" not in response(kept)
    for unsent, absent in ((False, ["s3"]), (True, [])):
        write_checkout(store.home, Note(id="a", where=url, state=state, dirty=unsent, absent=absent))
        expected = {"url": url, "state": 7, "at": "2026-07-01T00:00:00Z", "unsent": unsent, "absent": absent}
        assert response(kept)["checkout"] == expected
    assert "checkout" not in response(store)


def test_a_snapshot_is_stale_from_an_age_on_and_still_served(store: Store) -> None:
    fresh, old = response(store, HOUR, 2 * HOUR), response(store, 3 * HOUR, 2 * HOUR)
    assert (fresh["age_seconds"], fresh["stale"], fresh["max_age_seconds"]) == (HOUR, False, 2 * HOUR)
    assert (old["age_seconds"], old["stale"], old["status"]) == (3 * HOUR, True, "ready")
    assert response(store, 1e9)["stale"] is False


def test_after_a_rollback_the_age_is_that_of_its_snapshot_and_the_run_has_the_earlier_logical_time(home: Path) -> None:
    assert run_memstate(home, "maintain", "--now", "2026-05-06T02:00:00Z").code == 0
    began = datetime.now(UTC)
    assert run_memstate(home, "rollback", "1").code == 0
    with served(open_store(home), Options(max_age=HOUR)) as client:
        found = client.until_ready().get("/readyz").document
        ages = {name: value(client, f"{name}_age_seconds") for name in ("snapshot", "last_run")}
    passed = (datetime.now(UTC) - began).total_seconds()
    assert (found["snapshot"], found["last_run"]["now"], found["stale"]) == ("s0/3", NIGHT, False)
    assert 0 <= found["age_seconds"] <= ages["snapshot"] <= passed
    assert 0 <= ages["last_run"] - (began - parse_moment(NIGHT)).total_seconds() <= passed


ERROR = {"name": "C3", "severity": "ERROR"}


@pytest.mark.parametrize(
    ("checks", "passed"),
    [
        (None, None),
        ([{**ERROR, "passed": True}, {"name": "W", "severity": "WARN", "passed": False}], True),
        ([{**ERROR, "passed": True}, {**ERROR, "passed": False}], False),
    ],
)
def test_an_unpublished_run_is_reported_with_its_checks(
    store: Store, checks: list[dict[str, Any]] | None, passed: bool | None
) -> None:
    begun(store.home, 2, checks)
    assert response(store)["unpublished_run"] == {
        "run_id": "run-2", "now": "2026-07-01T00:00:00Z", "checks_passed": passed
    }  # fmt: skip


def test_leftovers_of_an_older_run_are_not_reported(store: Store) -> None:
    begun(store.home, 1)
    assert response(store)["unpublished_run"] is None
    shutil.rmtree(store.home.work("s0"))
    assert response(store)["unpublished_run"] is None


def test_who_does_not_see_every_scope_hears_that_it_is_ready_and_stale(store: Store) -> None:
    with served(store, Options(api_key="k", max_age=0.0)) as client:
        client.until_ready()
        assert client.get("/readyz").document == {"status": "ready", "stale": True}
        whole = client.get("/readyz", X_API_Key="k")
        assert (whole.status, whole.document["stale"], whole.document["snapshot"]) == (200, True, "s0/1")


def test_each_shard_has_its_state_and_can_be_asked_for_alone(tmp_path: Path, publish: Publish) -> None:
    for shard in ("s0", "s1"):
        publish(tmp_path / "home", harbour, shard=shard, shards=3)
    store = Store(Home(tmp_path / "home"), Settings(store=StoreSettings(shards=3)))
    (store.home.snapshots("s1") / "1" / "manifest.json").write_text("{")
    with served(store, Options(api_key="k", max_age=0.0)) as client:
        shards = client.until_ready().get("/readyz", X_API_Key="k").document["shards"]
        assert {name: each["state"] for name, each in shards.items()} == {"s0": "open", "s1": "failed", "s2": "empty"}
        assert (shards["s0"]["snapshot"], shards["s0"]["problem"]) == ("s0/1", None)
        assert shards["s0"]["age_seconds"] >= 0
        assert "manifest.json" in shards["s1"]["problem"]
        paths = {name: f"/readyz?shard={name}" for name in ("s0", "s1", "s2", "s3", "")}
        assert {name: client.get(path).status for name, path in paths.items()} == {
            "s0": 200, "s1": 503, "s2": 200, "s3": 404, "": 404
        }  # fmt: skip
        assert client.get(paths["s0"]).document == {"status": "ready", "stale": True}
        assert "manifest.json" not in str(client.get(paths["s1"]).document)
        alone = client.get(paths["s0"], X_API_Key="k").document
        assert (alone["stale"], list(alone["shards"])) == (True, ["s0"])
        refused = client.get(paths["s1"], X_API_Key="k").document
        assert refused["type"] == "urn:memstate:problem:snapshot-damaged"


def test_after_a_night_its_run_and_its_checks_are_reported(home: Path) -> None:
    with serving_process(home, "--max-age", "0.001") as (client, _):
        ready = client.until_ready().get("/readyz").document
    served_run = current_snapshot(Home(home), "s0")
    assert served_run is not None
    assert ready["last_run"] == {"run_id": served_run.manifest.run_id, "now": NIGHT, "checks_passed": True}
    assert (ready["unpublished_run"], ready["refused_snapshot"]) == (None, None)
    assert (ready["max_age_seconds"], ready["stale"]) == (3.6, True)


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    refused = run_memstate(tmp_path / "home", "serve", "--max-age", "-1", "--json")
    assert refused.code == 2
