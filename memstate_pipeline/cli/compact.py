"""`memstate compact`: joins small files of the ledger, and removes those that nothing reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.night.compaction import Compaction
    from memstate_core.run.store import Store


def compact(
    context: typer.Context,
    now: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time from which the hour counts that superseded files stay for readers, ISO 8601. Default: the "
            "machine's clock.",
        ),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Join small files of the ledger, and remove old ones.

    Removed are superseded files that nothing reads. Versions that kept snapshots refer to keep their files. The ledger
    is folded before and after, to the same state.
    """
    document = _compacted(context.obj.existing_store, moment(now) or datetime.now(UTC))
    show(document, as_json, lambda: _lines(document))


def _compacted(store: Store, now: datetime) -> dict[str, Any]:
    from memstate_core.night.compaction import compact_ledger
    from memstate_core.state.snapshots import combined_state_hash
    from memstate_pipeline.writers import holding

    with holding(store, f"process {os.getpid()} (memstate compact)"), live_progress():
        done = compact_ledger(store, now)
    tables = {table: _table(done, table) for table in done.vacuumed}
    return {
        "state_hash": combined_state_hash(done.states) if done.states else None,
        "tables": tables,
        "freed_bytes": sum(table["freed_bytes"] for table in tables.values()),
    }


def _table(done: Compaction, table: str) -> dict[str, Any]:
    found = done.vacuumed[table]
    before, after = done.joined.get(table, (None, None))
    return {
        "joined_files": before,
        "joined_to": after,
        "removed_files": found.files,
        "freed_bytes": found.freed,
        "waiting_bytes": found.waiting,
        "pinned_bytes": found.pinned,
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    for table, found in document["tables"].items():
        if found["joined_files"] is not None:
            yield f"{table}: joined {found['joined_files']:,} data files to {found['joined_to']:,}"
    tables = document["tables"].values()
    removed, waiting, pinned = (_sum(tables, key) for key in ("removed_files", "waiting_bytes", "pinned_bytes"))
    yield f"removed {removed:,} superseded files, {_mib(document['freed_bytes'])}"
    if waiting:
        yield f"{_mib(waiting)} more after an hour, in which readers may still need them"
    if pinned:
        yield f"{_mib(pinned)} more when kept snapshots no longer refer to them"
    yield f"state hash: {document['state_hash'] or 'none yet'}, unchanged"


def _sum(tables: Any, key: str) -> int:
    return sum(table[key] for table in tables)


def _mib(size: int) -> str:
    return f"{size / 1048576:,.1f} MiB"
