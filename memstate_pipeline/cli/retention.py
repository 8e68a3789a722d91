"""`memstate retention`: removes what `[retention]` no longer keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.terminal import visible

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def retention(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Name what would be removed; remove nothing.")] = False,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time from which ages count, ISO 8601. Default: the machine's clock."),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Remove old report pages, run records and dumps.

    Dumps are those that were read. `[retention]` says what is kept. Topics, evidence and decisions are not touched.
    """
    document = _removed(context.obj.existing_store, moment(now) or datetime.now(UTC), dry_run)
    show(document, as_json, lambda: _lines(document))


def _removed(store: Store, now: datetime, dry_run: bool) -> dict[str, Any]:
    from memstate_pipeline.instance import dagster_instance
    from memstate_pipeline.retention import due, remove
    from memstate_pipeline.writers import holding

    holder = f"process {os.getpid()} (memstate retention)"
    with live_progress(doing="retention"), holding(store, holder), dagster_instance(store.home) as instance:
        removals = due(store, instance, now)
        removed = {each.kind: {"names": each.names, "bytes": each.size} for each in removals}
        if not dry_run:
            remove(store, instance, removals, now)
    return {"dry_run": dry_run, "removed": removed}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    verb = "would remove" if document["dry_run"] else "removed"
    for kind, found in document["removed"].items():
        yield f"{verb} {len(found['names']):,} {kind}, {found['bytes'] / 1048576:,.1f} MiB"
        yield from (f"  {visible(name)}" for name in found["names"])
