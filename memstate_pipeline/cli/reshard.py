"""`memstate reshard`: changes the number of shards of a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.corrections import correcting
from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store

MOST = 256


def reshard(
    context: typer.Context,
    count: Annotated[int, typer.Argument(metavar="N", help="How many shards the store shall have, 1 to 256.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what each shard would hold and change nothing.")
    ] = False,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Logical time, ISO 8601. Default: that of the served snapshots."),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Change the number of shards, and serve the new ones.

    They are built from the ledger. What is served answers until all are built and every scope has the state that it
    had; servers switch by themselves. A run that was interrupted goes on where it stopped. Restart `memstate ui`
    afterwards.
    """
    from memstate_pipeline.publication import publish_all

    store, at = context.obj.existing_store, moment(now)
    if not 1 <= count <= MOST:
        raise typer.BadParameter(f"N is {count}, expected 1 to {MOST}")
    with live_progress(doing="reshard"):
        document = _resharded(store, count, at, dry_run=dry_run)
        problem = None if dry_run else publish_all(store)
    if problem is not None:
        document["not_published"] = problem
    show(document, as_json, lambda: _lines(document))
    if problem is not None:
        note(f"the number of shards is changed here, but not published: {problem}")
        raise typer.Exit(1)


def _resharded(store: Store, count: int, at: datetime | None, *, dry_run: bool) -> dict[str, Any]:
    """The command's JSON; a change to this number that a killed process had recorded was completed instead."""
    from memstate_core.night.resharding.reshard import reshard as change
    from memstate_core.night.resharding.switch import require_settings

    require_settings(os.environ)
    store = _as_at_url(store, count)
    before, home = store.layout, store.home
    interrupted = home.begun_reshard.exists()
    with correcting(store, "reshard") as served:
        document = {"before": before.count, "shards": count, "dry_run": dry_run, "completed": False}
        if interrupted and not home.begun_reshard.exists() and store.layout.count == count:
            return document | _served(served) | {"completed": True}
        document["before"] = store.layout.count  # of a checkout it may have changed since
        if dry_run:
            return document | _served(served) | {"placed": _placed(store, served, count, at)}
        done = change(store, served, count, at)
        hashes = {manifest.shard: manifest.state_hash for manifest in done.manifests}
        names = [f"{manifest.shard}/{manifest.number}" for manifest in done.manifests]
        return document | _state(names, hashes) | {"scopes": done.scopes, "kept": done.kept}


def _as_at_url(store: Store, count: int) -> Store:
    """A store at a URL with the number of shards there, where the settings here name the new one already.

    A change that was killed when it was complete here, and not sent, leaves such settings.
    """
    named = store.settings.store
    if not named.url or named.shards != count:
        return store
    from memstate_core.storage.head import read_head
    from memstate_core.storage.purpose import STORE
    from memstate_core.storage.storage import storage

    found = read_head(storage(named.url, STORE))
    if found is None or found[0].state is None or found[0].shards == count:
        return store
    there = named.model_copy(update={"shards": found[0].shards})
    return replace(store, settings=store.settings.model_copy(update={"store": there}))


def _placed(store: Store, served: Mapping[str, Served], count: int, at: datetime | None) -> dict[str, dict[str, int]]:
    from memstate_core.night.resharding.inputs import inputs
    from memstate_core.night.resharding.reshard import placed

    return placed(served, inputs(store, served, count, at).layout)


def _served(served: Mapping[str, Served]) -> dict[str, Any]:
    hashes = {shard: each.snapshot.manifest.state_hash for shard, each in served.items()}
    return _state([each.snapshot.name for each in served.values()], hashes)


def _state(names: list[str], hashes: dict[str, str]) -> dict[str, Any]:
    from memstate_core.state.snapshots import combined_state_hash

    return {"snapshot": ",".join(names), "state_hash": combined_state_hash(hashes)}


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["dry_run"]:
        for shard, each in document["placed"].items():
            yield f"{shard}: scopes {each['scopes']:,}, topics {each['topics']:,}"
        yield f"nothing was changed; {document['snapshot']} is served as before"
        return
    if document["completed"]:
        yield "completed a change of the number of shards that was interrupted"
    else:
        yield f"shards: {document['shards']}, before: {document['before']}; scopes as they were: {document['scopes']:,}"
    if document.get("kept"):
        yield f"{document['kept']} had been built by a run that was interrupted"
    yield f"published {document['snapshot']}: state hash {document['state_hash']}"
    yield "restart `memstate ui` or the daemon; the first night or correction removes the snapshots of earlier shards"
    yield f"to go back: memstate reshard {document['before']}"
