"""Machines that share a store at a URL, Dagster's history in PostgreSQL and a broker, and nothing else.

Each machine is a home; workers are processes of Celery, started as the documentation says.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.launcher import DefaultRunLauncher
from dagster._core.run_coordinator import QueuedRunCoordinator
from sqlalchemy import create_engine, text

from memstate_core.model.scope import Layout
from memstate_core.night.checkout.note import read_checkout
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.run.store import open_store
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive, left_by_the_dead
from memstate_core.storage.lease import lease_holder, take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import night_holders
from memstate_core.storage.storage import storage
from memstate_pipeline.assets import publish as step
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, Seen, end_dead_runs
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.doctor.runs import run_findings
from memstate_pipeline.following import follow
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE
from memstate_pipeline.writers import nights_in_progress
from tests.pipeline import engines as servers
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.engine_machines import (
    SCOPES,
    SUCCESS,
    Shared,
    desk_of,
    drop,
    environment,
    nights,
    own_database,
    published,
    shared,
    statuses,
    storing_late,
    worker_of,
)
from tests.pipeline.engines import PASSWORD, networks_possible, wait_until
from tests.pipeline.test_checkout import observations
from tests.pipeline.test_publication import holds

servers.required()
pytestmark = pytest.mark.slow
__all__ = ["shared"]  # the fixture


@pytest.fixture
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's package waits seconds between its attempts to connect."""
    monkeypatch.setattr("dagster_postgres.utils.time", SimpleNamespace(sleep=lambda _: None))


def test_machines_see_the_runs_of_each_other_until_an_erasure_clears_them(shared: Shared, tmp_path: Path) -> None:
    database, named = shared
    given = {**named, BROKER_VARIABLE: "", "MEMSTATE_STORE_URL": "s3://bucket/history"}
    aya, ben = tmp_path / "aya", tmp_path / "ben"
    drop(aya, "one").rename(aya / "inbox" / "one.jsonl")
    night = run_memstate(aya, "maintain", "--now", NIGHT, "--json", **given)
    assert night.code == 0, night.stderr
    with environment(given), dagster_instance(Home(ben)) as instance:
        (run,) = nights(instance)
        assert (run.dagster_run.run_id, run.dagster_run.status) == (night.document["run_id"], SUCCESS)
        assert instance.get_latest_materialization_event(dg.AssetKey("snapshot")) is not None
        assert follow(open_store(ben), instance).startswith("runs are executed here")
        assert run_findings(open_store(ben), datetime.now(UTC))[0] == Finding("runs", True, "last nights: s0 success")
    for home in (aya, ben):
        assert list((home / "dagster").rglob("*.db")) == []
        assert not holds(home, PASSWORD.encode())
    erase = ("erase", "--scope", f"user:{SCOPES[0]}", "--yes", "--json")
    refused = run_memstate(ben, *erase, **{**given, POSTGRES_VARIABLE: ""})
    assert refused.document["error"]["type"] == "HistoryUnreachable"
    erased = run_memstate(ben, *erase, **given)
    assert (erased.code, erased.document["removed"]["runs"]) == (0, 1), erased.stderr
    assert "backups and write-ahead logs of the database" in str(erased.document["out_of_reach"])
    with create_engine(database.url).connect() as connection:
        for table in ("runs", "run_tags", "event_logs", "job_ticks"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0


def test_workers_make_queued_nights_one_at_a_time_and_one_of_them_dies(shared: Shared, tmp_path: Path) -> None:
    """The daemon of a machine requests a night of each shard; a worker is killed in the first one, and comes back."""
    url = "s3://bucket/nights"
    given = {**shared[1], "MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_SHARDS": "2"}
    desk = desk_of(tmp_path, given)
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        late, faults = running.enter_context(storing_late())
        workers = [worker_of(tmp_path, given | late, name) for name in ("aya", "ben")]
        for each in (*workers, desk):
            running.enter_context(each.running())
        wait_until(lambda: "Dagster run" in lease_holder(storage(url, STORE)))
        (victim,) = [each for each in workers if each.writes]
        victim.kill()
        faults.none()
        died = wait_until(lambda: left_by_the_dead(Home(victim.home).lock))
        seen: Seen = {}
        start = datetime.now(UTC)
        later = (start + n * STARTED_AND_SILENT for n in count())
        (ended,) = wait_until(lambda: end_dead_runs(open_store(desk.home), instance, next(later), seen))
        assert ended in died
        victim.start()
        wait_until(lambda: published(instance))
        wait_until(lambda: engines(open_store(desk.home), desk.given)[-1].detail.endswith("workers: 2"))
        found = engines(open_store(desk.home), desk.given)
        spans = [(record.start_time or 0, record.end_time or 0) for record in nights(instance)]
        made = set(statuses(instance))
        running.close()
        drop(desk.home, "two").rename(desk.home / "inbox" / "two.jsonl")
        assert follow(open_store(desk.home), instance).startswith("this home has state ")
    assert [(each.name, each.ok) for each in found] == [("database", True), ("broker", True)], found
    assert (len(spans), made) == (3, {"FAILURE", "SUCCESS"})
    assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
    note = read_checkout(Home(desk.home))
    assert note is not None
    assert "inbox/two.jsonl" in {file.path for file in note.files}
    carl = tmp_path / "carl"
    assert run_memstate(carl, "pull", **given).code == 0
    assert observations(carl) == [f"one-{scope}" for scope in SCOPES]
    assert run_memstate(carl, "status", "--json", **given).document["topics"]["active"] == len(SCOPES)
    assert not any(holds(each.home, PASSWORD.encode()) for each in (*workers, desk))


def test_workers_make_nights_of_several_shards_at_once(shared: Shared, tmp_path: Path) -> None:
    """Each in a network of its own, where that can be made, which has the three servers and nothing else.

    The second worker comes when the first one is at work: no night may be reserved for a worker that is busy.
    """
    database, named, url = *shared, "s3://bucket/at-once"
    own = own_database(database, "at_once")
    own |= {name: f"{named[name].rpartition('/')[0]}/1" for name in (BROKER_VARIABLE, RESULTS_VARIABLE)}
    given = (
        named | own | {"MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_SHARDS": "2", "MEMSTATE_STORE_NIGHTS_AT_ONCE": "2"}
    )
    desk = desk_of(tmp_path, given)
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        seen = given | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        ports = {int(port) for value in seen.values() for port in re.findall(r"127\.0\.0\.1:(\d+)", value)}
        apart = [running.enter_context(servers.network(n, ports)) if networks_possible() else None for n in range(2)]
        aya, ben = [
            worker_of(tmp_path, seen, name, network) for name, network in zip(("aya", "ben"), apart, strict=True)
        ]
        lease = take_lease(storage(url, STORE), "test", "the test", 60, Layout(2), brief=True)  # nights wait for it
        running.callback(lease.abandon)
        for each in (aya, desk):
            running.enter_context(each.running())
        wait_until(lambda: sorted(statuses(instance)) == ["STARTED", "STARTING"])
        running.enter_context(ben.running())
        wait_until(lambda: statuses(instance) == ["STARTED", "STARTED"])
        lease.release()
        wait_until(lambda: len(night_holders(storage(url, STORE))) == 2)
        wait_until(lambda: published(instance))
        wait_until(lambda: all(record.end_time for record in nights(instance)))
        spans = sorted((record.start_time or 0, record.end_time or 0) for record in nights(instance))
    assert len(spans) == 2
    assert spans[1][0] < spans[0][1], "the second night began before the first one ended"
    carl = tmp_path / "carl"
    assert run_memstate(carl, "pull", **given).code == 0
    assert observations(carl) == [f"one-{scope}" for scope in SCOPES]
    assert run_memstate(carl, "verify", "--deep", **given).code == 0


def test_one_machine_with_a_database_makes_nights_of_several_shards_at_once(shared: Shared, tmp_path: Path) -> None:
    """Dagster's queue and its default launcher, without a broker: both nights hold their shards at the same time."""
    database, named = shared
    alone = named | own_database(database, "alone") | {BROKER_VARIABLE: "", RESULTS_VARIABLE: ""}
    given = alone | {"MEMSTATE_STORE_SHARDS": "2", "MEMSTATE_STORE_NIGHTS_AT_ONCE": "2"}
    desk = desk_of(tmp_path, given)
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        assert isinstance(instance.run_launcher, DefaultRunLauncher)
        assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
        with exclusive(Home(desk.home).lock, "the test", brief=True):  # nights wait for it
            running.enter_context(desk.running())
            wait_until(lambda: len(nights_in_progress(open_store(desk.home))) == 2)
            assert statuses(instance) == ["STARTED", "STARTED"]
        wait_until(lambda: published(instance))
        wait_until(lambda: all(record.end_time for record in nights(instance)))
        spans = sorted((record.start_time or 0, record.end_time or 0) for record in nights(instance))
        queued = [
            instance.all_logs(record.dagster_run.run_id, of_type=dg.DagsterEventType.PIPELINE_ENQUEUED)
            for record in nights(instance)
        ]
        running.close()
        assert list((desk.home / "dagster").rglob("*.db")) == []
    assert [len(each) for each in queued] == [1, 1]
    assert spans[1][0] < spans[0][1], "the second night began before the first one ended"
    assert observations(desk.home) == [f"one-{scope}" for scope in SCOPES]
    assert run_memstate(desk.home, "verify", "--deep", **given).code == 0


@pytest.mark.skipif(shutil.which("rabbitmq-server") is None, reason="needs rabbitmq-server (Debian: its package)")
def test_a_worker_takes_nights_from_rabbitmq_and_leaves_results_in_the_database(shared: Shared, tmp_path: Path) -> None:
    database, named, url, folder = *shared, "s3://bucket/rabbit", tmp_path
    with ExitStack() as running:
        broker = running.enter_context(servers.rabbitmq())
        given = named | own_database(database, "rabbit") | {BROKER_VARIABLE: broker, "MEMSTATE_STORE_URL": url}
        given[RESULTS_VARIABLE] = f"db+{given[POSTGRES_VARIABLE]}"
        desk = desk_of(folder, given)
        worker = worker_of(folder, given, "aya")
        assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
        with environment(desk.given), dagster_instance(Home(desk.home)) as instance:
            for each in (worker, desk):
                running.enter_context(each.running())
            wait_until(lambda: nights(instance) and nights(instance)[0].dagster_run.status is SUCCESS)
            found = engines(open_store(desk.home), desk.given)
        assert [each.ok for each in found] == [True, True], found
    carl = folder / "carl"
    assert run_memstate(carl, "pull", **given).code == 0
    assert observations(carl) == [f"one-{scope}" for scope in SCOPES]
    with create_engine(given[POSTGRES_VARIABLE]).connect() as connection:
        assert connection.execute(text("SELECT status FROM celery_taskmeta")).scalars().all() == ["SUCCESS"]


@pytest.mark.usefixtures("without_waits")
def test_a_database_that_is_down_is_a_sentence_and_the_next_night_goes_on(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, named = shared
    given, home, real = {**named, BROKER_VARIABLE: ""}, tmp_path / "home", step.publish
    drop(home, "one").rename(home / "inbox" / "one.jsonl")

    def lost(*arguments: object) -> object:
        database.stop()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(step, "publish", lost)
    try:
        for _ in ("while it publishes", "before it begins"):
            refused = run_memstate(home, "maintain", "--now", NIGHT, "--json", **given)
            assert (refused.code, refused.document["error"]["type"]) == (1, "HistoryUnreachable"), refused.stderr
            assert "Traceback" not in refused.stderr
            assert "Connection refused. The store itself is sound" in refused.stderr.splitlines()[-1]
            monkeypatch.setattr(step, "publish", real)
        assert run_memstate(home, "status", **given).code == 0
        (finding,) = engines(open_store(home), {POSTGRES_VARIABLE: database.url})
        assert (finding.name, finding.ok, PASSWORD in finding.detail) == ("database", False, False)
    finally:
        database.start()
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json", **given)
    assert night.code == 0, night.stderr
    assert night.document["totals"]["evidence"] == len(SCOPES)
