"""Dagster's history by connections that stay open: few are made, all are closed, others see what is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DatabaseError

from memstate_core.state.home import Home
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.run_history import MOST_OPEN, kept_open

RUNS = [f"run-{number}" for number in range(2 * MOST_OPEN)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose history has runs with an event each."""
    home = Home(tmp_path)
    with dagster_instance(home) as instance:
        for run_id in RUNS:
            instance.add_run(dg.DagsterRun(job_name="job", run_id=run_id))
            say(instance, run_id, "begun")
    return home


@pytest.fixture
def connected() -> Iterator[list[str]]:
    """The databases to which connections are made, one for each."""
    made: list[str] = []

    def connects(connection: object, _: object) -> None:
        (row,) = connection.execute("PRAGMA database_list").fetchall()  # type: ignore[attr-defined]
        made.append(Path(row[2]).name)

    event.listen(Engine, "connect", connects)
    yield made
    event.remove(Engine, "connect", connects)


def say(instance: dg.DagsterInstance, run_id: str, message: str) -> None:
    instance.report_engine_event(message, job_name="job", run_id=run_id)


def said(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [entry.dagster_event.message for entry in instance.all_logs(run_id) if entry.dagster_event]


def opened(home: Home) -> set[str]:
    """The databases of the history that this process has open."""
    files = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return {file.name for file in files if file.is_relative_to(home.dagster) and file.suffix == ".db"}


def test_a_database_is_opened_once_after_it_is_made_and_not_for_each_access(home: Home, connected: list[str]) -> None:
    with dagster_instance(home) as instance:
        for number in range(20):
            say(instance, RUNS[0], f"step {number}")
            instance.get_run_by_id(RUNS[0])
            assert instance.get_latest_materialization_event(dg.AssetKey("topics")) is None
        assert said(instance, RUNS[0]) == ["begun", *(f"step {number}" for number in range(20))]
    for database in (f"{RUNS[0]}.db", "runs.db", "index.db"):
        assert 0 < connected.count(database) < 10, connected


def test_what_the_index_has_is_asked_once(home: Home) -> None:
    asked: list[str] = []

    def executes(_: object, __: object, statement: str, *___: object) -> None:
        if "table_info" in statement or "secondary_indexes" in statement:
            asked.append(statement)

    with dagster_instance(home) as instance:
        instance.get_asset_records([dg.AssetKey("topics")])
        event.listen(Engine, "before_cursor_execute", executes)
        for _ in range(3):
            assert list(instance.get_asset_records([dg.AssetKey("topics")])) == []
        event.remove(Engine, "before_cursor_execute", executes)
    assert asked == []


def test_what_the_index_lacks_is_asked_again(home: Home) -> None:
    with dagster_instance(home) as instance:
        events = instance.event_log_storage
        assert not events.has_secondary_index("later")
        events.enable_secondary_index("later")
        assert events.has_secondary_index("later")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux")
def test_threads_at_once_have_connections_of_their_own_and_leave_none(home: Home) -> None:
    together = threading.Barrier(4)
    with dagster_instance(home) as instance, ThreadPoolExecutor(4) as threads:
        say(instance, RUNS[0], "alone")

        def held(_: int) -> int:
            with instance.event_log_storage.run_connection(RUNS[0]) as connection:
                together.wait(60)
                return id(connection)

        assert len(set(threads.map(held, range(4)))) == 4
        assert said(instance, RUNS[0]) == ["begun", "alone"]
    assert opened(home) == set()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux")
def test_few_are_open_at_once_and_none_afterwards(home: Home) -> None:
    with dagster_instance(home) as instance:
        for run_id in RUNS:
            for _ in range(3):
                assert said(instance, run_id) == ["begun"]
        assert opened(home) & {f"{run_id}.db" for run_id in RUNS} == {f"{run_id}.db" for run_id in RUNS[-MOST_OPEN:]}
    assert opened(home) == set()
    assert list(home.dagster.rglob("*.db-wal")) == []


def test_others_see_at_once_what_is_written(home: Home) -> None:
    with dagster_instance(home) as writing, dagster_instance(home) as reading:
        for number in range(3):
            say(writing, RUNS[0], f"step {number}")
            assert said(reading, RUNS[0])[-1] == f"step {number}"
            say(reading, RUNS[0], f"answer {number}")
            assert said(writing, RUNS[0])[-1] == f"answer {number}"


def _delete_and_fail(connection: Connection) -> None:
    connection.execute(text("DELETE FROM event_logs"))
    connection.execute(text("no statement"))


def test_what_fails_is_rolled_back_and_keeps_nobody_waiting(home: Home) -> None:
    with dagster_instance(home) as instance:
        events = instance.event_log_storage
        for _ in range(3):
            with pytest.raises(DatabaseError), events.run_connection(RUNS[0]) as connection:
                _delete_and_fail(connection)
        assert said(instance, RUNS[0]) == ["begun"]
        say(instance, RUNS[0], "goes on")
    with dagster_instance(home) as instance:
        assert said(instance, RUNS[0]) == ["begun", "goes on"]


def test_a_history_elsewhere_is_left_as_it_is() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        before = [dict(vars(storage)) for storage in (instance.run_storage, instance.event_log_storage)]
        with kept_open(instance):
            assert [dict(vars(storage)) for storage in (instance.run_storage, instance.event_log_storage)] == before
