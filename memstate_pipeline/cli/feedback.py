"""The command that says of a topic whether it was of use, and how commands note uses in the journal."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from memstate_core.retrieve.topic import Resolved
    from memstate_core.run.store import Store

SOURCE = "cli"
Record = Annotated[
    bool,
    typer.Option(
        "--record", help="Count what is returned as used, from the next run on. Without it reading is no use."
    ),
]
At = Annotated[str | None, typer.Option("--now", help="The time of the use, ISO 8601; the machine's clock without it.")]


def feedback(
    context: typer.Context,
    topic_id: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, a tombstone of it, or an alias.")],
    used: Annotated[bool, typer.Option("--used/--failed", help="It was of use, or it was not what was wanted.")],
    field: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A field that is meant; the whole topic without any.")
    ] = None,
    now: At = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Say that a topic was of use or was not; the next run counts it."""
    from contextlib import ExitStack

    from memstate_core.retrieve.topic import resolve
    from memstate_pipeline.cli.readers import open_readers

    at, store = moment(now), context.obj.store
    with ExitStack() as stack:
        found = resolve(open_readers(store, stack), topic_id)
        _require_fields(found, field or [])
        named = {"topic_id": found.topic["id"][0], "scope": found.topic["scope"][0]}
    recorded = record_uses(store, [named], at, fields=field or None, failed=not used)
    show({"recorded": recorded}, as_json, lambda: recorded_lines(recorded))


def record_uses(
    store: Store,
    topics: Sequence[dict[str, Any]],
    at: datetime | None,
    *,
    fields: Sequence[str] | None = None,
    failed: bool = False,
) -> dict[str, Any]:
    """Notes that topics were used, in a segment of its own.

    Args:
        store: whose journal is written; no lock is needed.
        topics: documents with `topic_id` and `scope`.
        at: when; the machine's clock without it.
        fields: the fields that were used; None for each topic as a whole.
        failed: they were of no use.

    Returns:
        What was recorded, ready for JSON; `segment` is null where there was no topic.
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


def recorded_lines(recorded: dict[str, Any]) -> list[str]:
    """What was recorded, for people."""
    count, word = len(recorded["topic_ids"]), "of no use" if recorded["failed"] else "used"
    fields = f", fields {', '.join(recorded['fields'])}" if recorded["fields"] else ""
    return [f"recorded as {word}: {count} topic{'s' * (count != 1)}{fields}; the next run counts it"]


def _require_fields(found: Resolved, names: Sequence[str]) -> None:
    """Asks the graph, where fields stand too that default answers leave out.

    Raises:
        typer.BadParameter: the topic has no such field.
    """
    from memstate_core.state.graph import FIELD

    topic_id = found.topic["id"][0]
    known = found.reader.graph.read(FIELD, ["name"], where="r.topic_id = $id", id=topic_id)["name"].sort().to_list()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"topic {topic_id} has no field {unknown[0]!r}: expected some of {', '.join(known)}")
