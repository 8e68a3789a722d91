"""Corrections: what the commands share that record a person's decision and publish it at once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memstate_pipeline.cli.shared.bound import bound_warnings
from memstate_pipeline.cli.shared.output import as_uri
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store


@contextmanager
def correcting(store: Store, command: str) -> Iterator[dict[str, Served]]:
    """Locks the store and yields the served state by shard, rebuilt first if a published snapshot is missing.

    Raises:
        StoreLocked: another run holds the store.
        StoreNotFound: nothing was published yet.
    """
    from memstate_core.model.errors import StoreNotFound
    from memstate_core.night.rebuild import ensure_served
    from memstate_core.run.served_state import read_served
    from memstate_pipeline.report.run_report import report_interrupted
    from memstate_pipeline.writers import holding

    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    with live_progress(doing=command), holding(store, f"process {os.getpid()} (memstate {command})"):
        for shard in store.shards:
            ensure_served(store, shard, f"rebuild-{uuid.uuid4()}")
            report_interrupted(store, shard)
        yield read_served(store)


def publish(
    store: Store, shards: Mapping[str, Served], rows: Mapping[str, pl.DataFrame], at: datetime | None, why: str
) -> dict[str, Any]:
    """Records decisions and publishes the result.

    Args:
        store: the store, locked.
        shards: the served state by shard.
        rows: decisions by shard (columns DECISION).
        at: the time of the decisions; None for the machine's clock, but never before the served snapshot.
        why: the reason on record.

    Returns:
        `run_id`, `snapshot`, `state_hash`, `reports` (the pages) and `warnings` (of scopes over the bound) for the
        command's JSON.
    """
    from memstate_core.night.corrections import correct
    from memstate_core.state.current import served
    from memstate_core.state.snapshots import combined_state_hash
    from memstate_pipeline.report.correction import report_correction
    from memstate_pipeline.report.index import CORRECTION

    run_id, pages = f"{CORRECTION}{uuid.uuid4()}", []
    for shard, decided in rows.items():
        when = at or max(datetime.now(UTC), shards[shard].snapshot.manifest.now)
        page, problem = report_correction(store, correct(store, shard, run_id, when, decided, why))
        pages += [] if page is None else [str(page)]
        if problem is not None:
            typer.echo(f"warning: {shard} is published; its page cannot be written: {problem}", err=True)
    now_served = served(store.home, store.shards)
    manifests = [snapshot.manifest for snapshot in now_served]
    state = combined_state_hash({manifest.shard: manifest.state_hash for manifest in manifests})
    names = ",".join(f"{manifest.shard}/{manifest.number}" for manifest in manifests)
    warnings = bound_warnings(now_served, {scope for decided in rows.values() for scope in decided["scope"]})
    return {"run_id": run_id, "snapshot": names, "state_hash": state, "reports": pages, "warnings": warnings}


def named_topic(store: Store, topic_id: str) -> dict[str, str]:
    """The id and title of the topic that an id resolves to."""
    from contextlib import ExitStack

    from memstate_core.retrieve.views.topic import resolve
    from memstate_pipeline.cli.shared.readers import open_readers

    with ExitStack() as stack:
        topic = resolve(open_readers(store, stack), topic_id).topic
    return {"id": topic["id"][0], "title": topic["title"][0]}


def published_lines(published: Mapping[str, Any]) -> list[str]:
    """The snapshot that is served now, its state hash, the pages and the warnings."""
    first = f"published {published['snapshot']}: state hash {published['state_hash']}"
    pages = [f"report: {as_uri(Path(page))}" for page in published["reports"]]
    return [first, *pages, *(f"warning: {warning}" for warning in published["warnings"])]
