"""Machines that share a store at a URL, Dagster's history in PostgreSQL and a broker, and nothing else.

Each is a home with a process of its own: the daemon that requests nights, or a worker.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import create_engine, text

from memstate_core.model.scope import Layout
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.state.home import Home
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE, WORKER
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.partitions import PARTITION_TAG
from tests import warm
from tests.core.storage.s3 import Faults, empty_bucket, fault_proxy, s3_server
from tests.pipeline import engines as servers
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.engines import Database, Network

DAEMON = "dagster._daemon run -m memstate_pipeline.definitions"
SCOPES = sorted(next(f"u{n}" for n in range(99) if Layout(2).of(f"user:u{n}") == shard) for shard in ("s0", "s1"))
SUCCESS = dg.DagsterRunStatus.SUCCESS
Shared = tuple[Database, dict[str, str]]
"""The database, and the variables that name it and the broker."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
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


def own_database(database: Database, name: str) -> dict[str, str]:
    """A database of its own in the server, for a store of its own."""
    with create_engine(database.url, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return {POSTGRES_VARIABLE: f"{database.url.rpartition('/')[0]}/{name}"}


@contextmanager
def environment(given: Mapping[str, str]) -> Iterator[None]:
    """The variables of a machine, for what asks Dagster in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        yield


@contextmanager
def storing_late() -> Iterator[tuple[dict[str, str], Faults]]:
    """Variables of a machine whose nights send their first content and wait, with the lease of the store.

    So they can be killed in time on a busy machine. They go on once there are no faults.
    """
    with fault_proxy(os.environ["AWS_ENDPOINT_URL"]) as (endpoint, faults):
        faults.methods, faults.matching, faults.seconds = ("PUT",), "/objects/", 25.0
        yield {"AWS_ENDPOINT_URL": endpoint}, faults


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
            if self._network is None and "LD_PRELOAD" not in own:
                self._process = warm.Process(["-m", *self._arguments], own, output, output)
            else:
                command = [sys.executable, "-m", *self._arguments]
                command = command if self._network is None else self._network.command(command)
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


def desk_of(folder: Path, given: Mapping[str, str], name: str = "desk") -> Machine:
    """The machine with the daemon, which requests a night as soon as a row waits."""
    return Machine(folder / name, {**given, "MEMSTATE_SCHEDULE_PRESSURE_ROWS": "1"}, DAEMON)


def worker_of(folder: Path, given: Mapping[str, str], name: str, network: Network | None = None) -> Machine:
    """A machine with a worker."""
    return Machine(folder / name, given, f"{WORKER} --hostname {name}@%h", network)
