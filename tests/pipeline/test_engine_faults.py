"""What machines share fails, is slow, or is asked by two daemons; their clocks differ: each night is there once."""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pytest

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.run.store import open_store
from memstate_core.state.home import Home
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.doctor.checkout import remote_store
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.partitions import PARTITION_TAG
from tests.pipeline import engines as servers
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.engine_machines import (
    SCOPES,
    SUCCESS,
    Machine,
    Shared,
    desk_of,
    drop,
    environment,
    nights,
    own_database,
    shared,
    worker_of,
)
from tests.pipeline.engines import forwarded, free_port, wait_until
from tests.pipeline.test_checkout import observations

servers.required()
pytestmark = pytest.mark.slow
__all__ = ["shared"]  # the fixture
FINISHED = {SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
CLOCKS = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def given_for(shared: Shared, name: str) -> dict[str, str]:
    """The variables of the machines of a store of its own."""
    return shared[1] | own_database(shared[0], name) | {"MEMSTATE_STORE_URL": f"s3://bucket/{name}"}


def added(desk: Machine, name: str) -> None:
    assert run_memstate(desk.home, "import", str(drop(desk.home, name)), **desk.given).code == 0


def added_beside(desk: Machine, name: str) -> None:
    """The same where a night may be in progress, which is waited for."""
    dump = str(drop(desk.home, name))
    wait_until(lambda: run_memstate(desk.home, "import", dump, **desk.given).code == 0)


def require_once(folder: Path, given: dict[str, str], *names: str) -> None:
    """A machine that comes later finds all rows once, and a sound store."""
    carl = folder / "carl"
    assert run_memstate(carl, "pull", **given).code == 0
    assert observations(carl) == sorted(f"{name}-{scope}" for name in names for scope in SCOPES)
    assert run_memstate(carl, "verify", "--deep", **given).code == 0


def ended(instance: dg.DagsterInstance) -> list[dg.DagsterRunStatus]:
    """How the nights ended; empty while one has not."""
    found = [record.dagster_run.status for record in nights(instance)]
    return found if set(found) <= FINISHED else []


def runs_of(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> list[str]:
    """The ids of the nights that ended so."""
    return [record.dagster_run.run_id for record in nights(instance) if record.dagster_run.status is status]


def events(instance: dg.DagsterInstance, run_id: str) -> str:
    """What the *Runs* page shows of a run."""
    return "\n".join(str(entry) for entry in instance.all_logs(run_id))


def test_a_broker_that_is_down_before_a_night_and_in_one(shared: Shared, tmp_path: Path) -> None:
    """The night that cannot be launched fails and is started again; the one in progress goes on."""
    port, given = free_port(), given_for(shared, "broker")
    url = f"redis://:{servers.PASSWORD}@127.0.0.1:{port}/0"
    given |= {BROKER_VARIABLE: url, RESULTS_VARIABLE: url}
    desk, worker = desk_of(tmp_path, given), worker_of(tmp_path, given, "aya")
    added(desk, "one")
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        running.enter_context(desk.running())
        wait_until(lambda: dg.DagsterRunStatus.FAILURE in ended(instance))
        (failed, *_) = runs_of(instance, dg.DagsterRunStatus.FAILURE)
        assert "Marking the run as failed and dropping it from the queue" in events(instance, failed)
        with servers.broker(tmp_path, port):
            running.enter_context(worker.running())
            wait_until(lambda: SUCCESS in ended(instance))
            made = len(nights(instance))
            added(desk, "two")
            wait_until(lambda: worker.writes)
        wait_until(lambda: SUCCESS in ended(instance)[made:])
    require_once(tmp_path, given, "one", "two")


def test_a_slow_database_makes_nights_slow(shared: Shared, tmp_path: Path) -> None:
    given, home, port = given_for(shared, "slow") | {BROKER_VARIABLE: ""}, tmp_path / "home", free_port()
    real = given[POSTGRES_VARIABLE]
    given[POSTGRES_VARIABLE] = real.replace(f":{shared[0].port}/", f":{port}/")
    drop(home, "one").rename(home / "inbox" / "one.jsonl")
    with forwarded("127.0.0.1", port, shared[0].port, delay=0.005):
        night = run_memstate(home, "maintain", "--now", NIGHT, "--json", **given)
        assert night.code == 0, night.stderr
    given[POSTGRES_VARIABLE] = real
    with environment(given), dagster_instance(Home(home)) as instance:
        assert ended(instance) == [SUCCESS]
    require_once(tmp_path, given, "one")


def test_object_storage_that_is_unreachable_in_a_night(shared: Shared, tmp_path: Path) -> None:
    """It is closed until the night has failed and its lease has expired; the night after it publishes.

    A night that failed before its first step is repeated at once, one that failed in a step by what arrives next.
    """
    given, port = given_for(shared, "outage"), free_port()
    through = given | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    opened = partial(forwarded, "127.0.0.1", port, urlsplit(os.environ["AWS_ENDPOINT_URL"]).port)
    desk, worker = desk_of(tmp_path, through), worker_of(tmp_path, through, "aya")
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        with opened():
            added(desk, "one")
            for each in (worker, desk):
                running.enter_context(each.running())
            wait_until(lambda: worker.writes)
        (failed, *_) = wait_until(lambda: runs_of(instance, dg.DagsterRunStatus.FAILURE))
        said = events(instance, failed)
        assert re.search(r"StoreUnreachable: s3://bucket/outage(/\S+)? failed", said), said
        assert not remote_store(open_store(desk.home)).ok
        time.sleep(2 * float(given["MEMSTATE_STORE_LEASE_SECONDS"]))
        with opened():
            added_beside(desk, "two")
            wait_until(lambda: SUCCESS in ended(instance))
    require_once(tmp_path, given, "one", "two")


def test_a_database_that_is_away_under_daemon_and_worker(shared: Shared, tmp_path: Path) -> None:
    """It stops while a night is in progress, and comes back."""
    given = given_for(shared, "away")
    desk, worker = desk_of(tmp_path, given), worker_of(tmp_path, given, "aya")
    added(desk, "one")
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        for each in (worker, desk):
            running.enter_context(each.running())
        wait_until(lambda: worker.writes)
        shared[0].stop()
        try:
            database = engines(open_store(desk.home), desk.given)[0]
            wait_until(lambda: not worker.writes)
        finally:
            shared[0].start()
        assert (database.name, database.ok) == ("database", False)
        added_beside(desk, "two")
        wait_until(lambda: ended(instance)[-1:] == [SUCCESS])
        (failed, *_) = runs_of(instance, dg.DagsterRunStatus.FAILURE)
        said = events(instance, failed)
        assert "psycopg2" in said or "its process is gone" in said, said
    require_once(tmp_path, given, "one", "two")


def test_a_slow_broker_makes_nights_late(shared: Shared, tmp_path: Path) -> None:
    given, port = given_for(shared, "latency"), free_port()
    real = urlsplit(given[BROKER_VARIABLE]).port
    through = {name: given[name].replace(f":{real}/", f":{port}/") for name in (BROKER_VARIABLE, RESULTS_VARIABLE)}
    with ExitStack() as running, forwarded("127.0.0.1", port, real, delay=0.2):
        desk, worker = desk_of(tmp_path, given | through), worker_of(tmp_path, given | through, "aya")
        added(desk, "one")
        running.enter_context(environment(desk.given))
        instance = running.enter_context(dagster_instance(Home(desk.home)))
        for each in (worker, desk):
            running.enter_context(each.running())
        wait_until(lambda: SUCCESS in ended(instance))
        assert set(ended(instance)) == {SUCCESS}
    require_once(tmp_path, given, "one")


def test_two_daemons_make_no_row_twice(shared: Shared, tmp_path: Path) -> None:
    """Both request nights of the same rows; only a night at a time holds the store."""
    given = given_for(shared, "daemons")
    desks = [desk_of(tmp_path, given, name) for name in ("desk", "other")]
    worker = worker_of(tmp_path, given, "aya")
    added(desks[0], "one")
    with ExitStack() as running, environment(desks[0].given), dagster_instance(Home(desks[0].home)) as instance:
        for each in (worker, *desks):
            running.enter_context(each.running())
        wait_until(lambda: SUCCESS in ended(instance), 600)
    require_once(tmp_path, given, "one")


@pytest.mark.skipif(CLOCKS is None, reason="needs libfaketime (Debian: apt-get install faketime)")
def test_workers_whose_clocks_differ_by_an_hour(shared: Shared, tmp_path: Path) -> None:
    """Each makes a night, after one whose clock is ahead of its own; the daemon has the clock of the second one."""
    given, clocks = given_for(shared, "clocks"), {"aya": "+1h", "ben": "+0", "eva": "-1h"}
    desk = desk_of(tmp_path, given)
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        running.enter_context(desk.running())
        for number, (name, shift) in enumerate(clocks.items()):
            shifted = {"LD_PRELOAD": str(CLOCKS), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            added(desk, name)
            with worker_of(tmp_path, given | shifted, name).running():
                wait_until(lambda number=number: ended(instance)[number:])
        assert ended(instance) == [SUCCESS] * len(clocks)
        starts = [record.start_time or 0 for record in nights(instance)]
    assert starts[0] > starts[1] > starts[2], "the clocks did not differ"
    require_once(tmp_path, given, *clocks)


def test_a_run_on_a_slow_clock_is_not_taken_for_silent(shared: Shared, tmp_path: Path) -> None:
    """Its last event is an hour old as it comes; it is silent once nothing has followed for long enough here."""
    given, home = given_for(shared, "silence") | {BROKER_VARIABLE: ""}, tmp_path / "home"
    drop(home, "one")
    now, seen = datetime.now(UTC), dict[str, tuple[int, datetime]]()
    with environment(given), dagster_instance(Home(home)) as instance:
        store = open_store(home)
        job = build_defs(home).resolve_job_def(NIGHTLY)
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags={PARTITION_TAG: "s0"})
        said = {"error_info": None, "level": 20, "user_message": "it begins", "run_id": run.run_id}
        instance.store_event(dg.EventLogEntry(**said, timestamp=now.timestamp() - 3600))
        assert end_dead_runs(store, instance, now) == []
        assert end_dead_runs(store, instance, now, seen) == []
        instance.store_event(dg.EventLogEntry(**said, timestamp=now.timestamp() - 3599))
        assert end_dead_runs(store, instance, now + 2 * STARTED_AND_SILENT, seen) == []
        assert end_dead_runs(store, instance, now + 2.5 * STARTED_AND_SILENT, seen) == []
        assert end_dead_runs(store, instance, now + 4 * STARTED_AND_SILENT, seen) == [run.run_id]
        assert end_dead_runs(store, instance, now + 9 * STARTED_AND_SILENT, seen) == []
    assert seen == {}
