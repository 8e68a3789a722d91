"""What Dagster leaves of runs that it deletes, and of events without a run: verdicts of checks, observations.

`DagsterInstance.delete_run` removes no verdict of a check, of which a night has a dozen, and nothing removes events
that sensors record without a run. The newest of each kind stays, whatever its age: the UI shows it as what holds now.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

import dagster as dg
from sqlalchemy import Connection, column, delete, func, select, table

_WITHOUT_RUN = ""
"""The run id of events that no run recorded."""
_VERDICTS = table(
    "asset_check_executions", *map(column, ("id", "asset_key", "check_name", "partition", "create_timestamp"))
)
_EVENTS = table(
    "event_logs", *map(column, ("id", "run_id", "dagster_event_type", "timestamp", "asset_key", "partition"))
)
_TAGS = table("asset_event_tags", column("event_id"))


@runtime_checkable
class _InTables(Protocol):
    """A storage of events in SQLite or Postgres; Dagster exports neither class."""

    def index_connection(self) -> AbstractContextManager[Connection]: ...


def remove_old_events(instance: dg.DagsterInstance, before: datetime) -> int:
    """Removes them from the history of an instance, and answers how many there were.

    Args:
        instance: Dagster's, whose history is of this store alone.
        before: a time; what was recorded then or later stays.
    """
    storage, before = instance.event_log_storage, before.astimezone(UTC).replace(tzinfo=None)
    if not isinstance(storage, _InTables):
        return 0
    verdicts, events = _VERDICTS.c, _EVENTS.c
    last_verdicts = select(func.max(verdicts.id)).group_by(verdicts.asset_key, verdicts.check_name, verdicts.partition)
    alone = events.run_id == _WITHOUT_RUN
    last_events = (
        select(func.max(events.id)).where(alone).group_by(events.asset_key, events.dagster_event_type, events.partition)
    )
    old_verdicts = (verdicts.create_timestamp < before, verdicts.id.not_in(last_verdicts))
    old_events = (alone, events.timestamp < before, events.id.not_in(last_events))
    with storage.index_connection() as connection:
        removed = [
            connection.execute(delete(_VERDICTS).where(*old_verdicts)).rowcount,
            connection.execute(delete(_EVENTS).where(*old_events)).rowcount,
        ]
        connection.execute(delete(_TAGS).where(_TAGS.c.event_id.not_in(select(events.id))))
    return sum(removed)
