"""Recording accesses from the command line, for `query`, `topic` and `feedback`.

Reading a store records nothing unless `--record` is given. Accesses go to a journal segment of their own, without
the store's lock; the next run collects it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import moment

if TYPE_CHECKING:
    from memstate_core.run.store import Store

SOURCE = "cli"
Record = Annotated[
    bool,
    typer.Option("--record", help="Record the returned topics as accessed; the next run counts the accesses."),
]
AccessTime = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Time of the access, ISO 8601. Default: the machine's clock."),
]


def access_time(store: Store, record: bool, now: str | None, failed: bool = False) -> datetime | None:
    """The time of an access from the options of a reading command; None for the machine's clock.

    Before anything is recorded, an interrupted erasure is completed, so that no access of an erased topic is.

    Raises:
        typer.BadParameter: an option describes an access, but `--record` is missing.
    """
    if not record and (failed or now is not None):
        raise typer.BadParameter(f"{'--failed' if failed else '--now'} describes an access: it needs --record")
    if record:
        from memstate_pipeline.writers import complete_erasure

        complete_erasure(store)
    return moment(now)


def record_accesses(
    store: Store,
    topics: Sequence[dict[str, Any]],
    at: datetime | None,
    *,
    fields: Sequence[str] | None = None,
    failed: bool = False,
) -> dict[str, Any]:
    """Records an access to each topic in a new segment of the journal.

    Args:
        store: the store; its lock is not needed.
        topics: documents with `topic_id` and `scope`.
        at: the time of the accesses; None for the machine's clock.
        fields: the fields that were accessed; None for each topic as a whole.
        failed: the topics were returned but not useful.

    Returns:
        What was recorded, ready for JSON; `segment` is null if there was no topic.
    """
    from memstate_core.ingest.accesses.journal import AccessJournal
    from memstate_core.model.text import iso

    when = at or datetime.now(UTC)
    with AccessJournal(store.home.accesses, f"{SOURCE}-{uuid.uuid4()}") as journal:
        for topic in topics:
            journal.record(topic["topic_id"], when, SOURCE, fields=fields, failed=failed, scope=topic["scope"])
    return {
        "topic_ids": [topic["topic_id"] for topic in topics],
        "fields": None if fields is None else list(fields),
        "failed": failed,
        "at": iso(when),
        "source": SOURCE,
        "segment": journal.path.name if topics else None,
    }


def recorded_lines(answer: dict[str, Any]) -> list[str]:
    """A line about the accesses recorded with an answer; none if nothing was to be recorded."""
    recorded = answer.get("recorded")
    if recorded is None:
        return []
    count, verdict = len(recorded["topic_ids"]), "not useful" if recorded["failed"] else "accessed"
    fields = f", fields {', '.join(recorded['fields'])}" if recorded["fields"] else ""
    return [f"recorded as {verdict}: {count} topic{'s' * (count != 1)}{fields}; the next run counts it"]
