"""Machines that share a store at a URL, Dagster's history in PostgreSQL and a broker, and nothing else.

Each machine is a home; workers are processes of Celery, started as the documentation says.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from sqlalchemy import create_engine, text

from memstate_core.model.scope import Layout
from memstate_core.night.checkout.note import read_checkout
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.run.store import open_store
from memstate_core.state.home import Home
from memstate_core.state.lock import left_by_the_dead
from memstate_core.storage.lease import lease_holder, take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import night_holders
from memstate_core.storage.storage import storage
from memstate_pipeline.assets import publish as step
from memstate_pipeline.dead_runs import end_dead_runs
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.doctor.runs import run_findings
from memstate_pipeline.following import follow
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE, WORKER
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.partitions import PARTITION_TAG
from tests import warm
from tests.core.storage.s3 import empty_bucket, s3_server
from tests.pipeline import engines as servers
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate
from tests.pipeline.engines import PASSWORD, Database, Network, networks_possible, wait_until
from tests.pipeline.test_checkout import observations
from tests.pipeline.test_publication import holds

servers.required()
pytestmark = pytest.mark.slow
SCOPES = sorted(next(f"u{n}" for n in range(99) if Layout(2).of(f"user:u{n}") == shard) for shard in ("s0", "s1"))
SUCCESS = dg.DagsterRunStatus.SUCCESS
Shared = tuple[Database, dict[str, str]]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, dict[str, str]]]:
    """A database, a broker and object storage, and the variables that name the first two."""
    folder = tmp_path_factory.mktemp("servers")
    with (
        servers.database() as database,
        servers.broker(folder) as broker,
        s3_server(folder) as endpoint,
        pytest.MonkeyPatch.context() as patch,
    ):
        empty_bucket(endpoint, patch)
        named = {POSTGRES_VARIABLE: database.url, BROKER_VARIABLE: broker, RESULTS_VARIABLE: broker}
        yield database, {**named, "MEMSTATE_STORE_LEASE_SECONDS": "1"}


@pytest.fixture
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's package waits seconds between its attempts to connect."""
    monkeypatch.setattr("dagster_postgres.utils.time", SimpleNamespace(sleep=lambda _: None))


@contextmanager
def environment(given: Mapping[str, str]) -> Iterator[None]:
    """The variables of a machine, for what asks Dagster in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        yield


def drop(home: Path, name: str) -> Path:
    """A dump of an observation in each shard of two, beside the inbox."""
    (home / "inbox").mkdir(parents=True, exist_ok=True)
    (home / "memstate.toml").write_text("[store]\nniceness = 0\n")
    rows = [
        {"observation_id": f"{name}-{scope}", "scope": {"type": "user", "id": scope}, "topic_key": "yard"}
        | {"title": "Yard", "observed_at": "2026-01-01", "text": f"The gate of {scope} is shut."}
        for scope in SCOPES
    ]
    dump = home / f"{name}.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return dump


def nights(instance: dg.DagsterInstance) -> list[dg.RunRecord]:
    """The nights on record, in the order of their creation."""
    return list(instance.get_run_records(dg.RunsFilter(job_name=NIGHTLY), ascending=True))


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


class Machine:
    """A home with a process of its own, in a network of its own if there is one."""

    def __init__(self, home: Path, given: Mapping[str, str], arguments: str, network: Network | None = None) -> None:
        drop(home, "none").unlink()
        self._network = network
        self.home, self._arguments = home, shlex.split(arguments)
        self.given = {**given, "MEMSTATE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
        assert run_memstate(home, "init", **self.given).code == 0
        if network is not None:
            self.given |= {name: value.replace("127.0.0.1", network.address) for name, value in self.given.items()}

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.kill()

    def start(self) -> None:
        with (self.home / "log.txt").open("ab") as output:
            own, self._process = clean_environment(**self.given), None
            if self._network is None:
                self._process = warm.Process(["-m", *self._arguments], own, output, output)
            else:
                command = self._network.command([sys.executable, "-m", *self._arguments])
                self._process = subprocess.Popen(command, env=own, stdout=output, stderr=output)

    def kill(self) -> None:
        """Ends the process and those that it started at once, as the loss of the machine would."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        for each in [pid, *(children.read_text().split() if children.exists() else [])]:
            with suppress(ProcessLookupError):
                os.kill(int(each), signal.SIGKILL)
        self._process.wait(10)

    @property
    def writes(self) -> bool:
        return Home(self.home).lock.with_suffix(".holder.json").exists()


def statuses(instance: dg.DagsterInstance) -> list[str]:
    """Of the nights on record."""
    return [record.dagster_run.status.value for record in nights(instance)]


def published(instance: dg.DagsterInstance) -> bool:
    done = (record.dagster_run for record in nights(instance))
    return {run.tags[PARTITION_TAG] for run in done if run.status is SUCCESS} == {"s0", "s1"}


def test_workers_make_queued_nights_one_at_a_time_and_one_of_them_dies(shared: Shared, tmp_path: Path) -> None:
    """The daemon of a machine requests a night of each shard; a worker is killed in the first one, and comes back."""
    url = "s3://bucket/nights"
    given = {**shared[1], "MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_SHARDS": "2"}
    desk = Machine(
        tmp_path / "desk",
        {**given, "MEMSTATE_SCHEDULE_PRESSURE_ROWS": "1"},
        "dagster._daemon run -m memstate_pipeline.definitions",
    )
    workers = [Machine(tmp_path / name, given, f"{WORKER} --hostname {name}@%h") for name in ("aya", "ben")]
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        for each in (*workers, desk):
            running.enter_context(each.running())
        wait_until(lambda: "Dagster run" in lease_holder(storage(url, STORE)))
        (victim,) = [each for each in workers if each.writes]
        victim.kill()
        died = wait_until(lambda: left_by_the_dead(Home(victim.home).lock))
        later = datetime.now(UTC) + timedelta(seconds=60)
        (ended,) = wait_until(lambda: end_dead_runs(open_store(desk.home), instance, later))
        assert ended in died
        victim.start()
        wait_until(lambda: published(instance))
        wait_until(lambda: engines(open_store(desk.home), desk.given)[-1].detail.endswith("and 2 worker(s)"))
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
    desk = Machine(
        tmp_path / "desk",
        {**given, "MEMSTATE_SCHEDULE_PRESSURE_ROWS": "1"},
        "dagster._daemon run -m memstate_pipeline.definitions",
    )
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running, environment(desk.given), dagster_instance(Home(desk.home)) as instance:
        seen = given | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        ports = {int(port) for value in seen.values() for port in re.findall(r"127\.0\.0\.1:(\d+)", value)}
        apart = [running.enter_context(servers.network(n, ports)) if networks_possible() else None for n in range(2)]
        aya, ben = [
            Machine(tmp_path / name, seen, f"{WORKER} --hostname {name}@%h", network)
            for name, network in zip(("aya", "ben"), apart, strict=True)
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


@pytest.mark.skipif(shutil.which("rabbitmq-server") is None, reason="needs rabbitmq-server (Debian: its package)")
def test_a_worker_takes_nights_from_rabbitmq_and_leaves_results_in_the_database(shared: Shared, tmp_path: Path) -> None:
    database, named, url, folder = *shared, "s3://bucket/rabbit", tmp_path
    with ExitStack() as running:
        broker = running.enter_context(servers.rabbitmq())
        given = named | own_database(database, "rabbit") | {BROKER_VARIABLE: broker, "MEMSTATE_STORE_URL": url}
        given[RESULTS_VARIABLE] = f"db+{given[POSTGRES_VARIABLE]}"
        desk = Machine(
            folder / "desk",
            {**given, "MEMSTATE_SCHEDULE_PRESSURE_ROWS": "1"},
            "dagster._daemon run -m memstate_pipeline.definitions",
        )
        worker = Machine(folder / "aya", given, f"{WORKER} --hostname aya@%h")
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


def own_database(database: Database, name: str) -> dict[str, str]:
    """A database of its own in the server, for a store of its own."""
    with create_engine(database.url, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return {POSTGRES_VARIABLE: f"{database.url.rpartition('/')[0]}/{name}"}


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
