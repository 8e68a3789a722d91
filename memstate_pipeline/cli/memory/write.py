"""Writing one observation from the command line, as evidence like that of any import.

Invariant: what validation refuses is an error of the command, so that nothing of it goes to quarantine.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import show

ScopeOf = Annotated[str, typer.Option("--scope", metavar="TYPE:ID", help="Scope of the item.")]
ObservedAt = Annotated[str | None, typer.Option("--at", metavar="TIME", help="When it holds from. Default: now.")]


def write(context: typer.Context, given: Mapping[str, Any], scope: str, observed_at: str | None, as_json: bool) -> None:
    """Imports one observation, and prints its id and whether it was there already.

    Args:
        context: the context of the command.
        given: the observation without scope and time; keys with None are left out.
        scope: its scope, as text.
        observed_at: its time; None for now.
        as_json: print one JSON document.

    Raises:
        typer.BadParameter: validation refuses it.
    """
    import msgspec

    from memstate_core.ingest.importer import import_paths
    from memstate_core.ingest.reasons import Rejection
    from memstate_core.ingest.validation.timestamps import Clock
    from memstate_core.ingest.validation.validate import RECORD, Rules, validate
    from memstate_core.model.scope import parse_scope
    from memstate_core.model.text import iso
    from memstate_pipeline.writers import complete_erasure

    store, now = context.obj.store, datetime.now(UTC)
    try:
        kind, _, name = parse_scope(scope).partition(":")
        row = {"scope": {"type": kind, "id": name}, "observed_at": observed_at or iso(now), "provenance": "ui"}
        raw = msgspec.json.encode(row | {key: value for key, value in given.items() if value is not None})
        record = dict(zip(RECORD, validate(raw, Rules(scope, Clock.at(now, store.settings))), strict=True))
    except (ValueError, Rejection) as error:
        raise typer.BadParameter(str(error)) from error
    complete_erasure(store)
    with TemporaryDirectory() as folder:
        dump = Path(folder) / "memory.jsonl"
        dump.write_bytes(raw + b"\n")
        report = import_paths(store.ledger, store.settings, [dump], now=now, run_id=f"memory-{uuid.uuid4()}")
    document = {"observation_id": record["observation_id"], "scope": record["scope"], "topic_key": record["topic_key"]}
    document |= {"accepted": report.accepted, "duplicate": report.duplicate, "quarantined": report.quarantined}
    show(document, as_json, lambda: _lines(document))
    if report.errors or report.quarantined:
        raise typer.Exit(1)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    done = "stored" if document["accepted"] else "already there" if document["duplicate"] else "refused"
    yield f"{done}: {document['observation_id']} in {document['scope']}; the next night publishes it"
