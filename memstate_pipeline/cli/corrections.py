"""What commands share by which a person decides something that is published at once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store


@contextmanager
def deciding(store: Store, command: str) -> Iterator[dict[str, Served]]:
    """Holds the store and what it serves, folded again first where nothing is left of what was published."""
    from memstate_core.model.errors import StoreNotFound
    from memstate_core.night.rebuild import ensure_served
    from memstate_core.run.served_state import read_served
    from memstate_core.state.lock import exclusive

    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    with exclusive(store.home.lock, f"process {os.getpid()} (memstate {command})"):
        for shard in store.shards:
            ensure_served(store, shard, f"rebuild-{uuid.uuid4()}")
        yield read_served(store)


def publish(
    store: Store, shards: Mapping[str, Served], rows: Mapping[str, pl.DataFrame], at: datetime | None, why: str
) -> dict[str, Any]:
    """Records decisions by shard; without a time at the machine's, though never before what is served."""
    from memstate_core.night.corrections import correct
    from memstate_core.state.snapshots import combined_state_hash, served

    run_id = f"correction-{uuid.uuid4()}"
    for shard, decided in rows.items():
        when = at or max(datetime.now(UTC), shards[shard].snapshot.manifest.now)
        correct(store, shard, run_id, when, decided, why)
    manifests = [snapshot.manifest for snapshot in served(store.home, store.shards)]
    state = combined_state_hash({manifest.shard: manifest.state_hash for manifest in manifests})
    names = ",".join(f"{manifest.shard}/{manifest.number}" for manifest in manifests)
    return {"run_id": run_id, "snapshot": names, "state_hash": state}


def named_topic(store: Store, topic_id: str) -> dict[str, str]:
    """The topic that answers for an id now."""
    from contextlib import ExitStack

    from memstate_core.retrieve.topic import resolve
    from memstate_pipeline.cli.readers import open_readers

    with ExitStack() as stack:
        topic = resolve(open_readers(store, stack), topic_id).topic
    return {"id": topic["id"][0], "title": topic["title"][0]}


def published_line(told: Mapping[str, Any]) -> str:
    """One line for people: what serves now, and its state."""
    return f"published {told['snapshot']}: state {told['state_hash']}"
