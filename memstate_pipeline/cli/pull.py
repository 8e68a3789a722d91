"""The `pull` command: a checkout of a store at a URL gets the state there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress


def pull(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every file here with its digest, and fetch those that differ.")
    ] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Bring this home to the state of the store at store.url.

    Commands that write do so by themselves; reading commands and servers answer from what is here. Needs no lease.
    """
    from memstate_core.night.checkout.pull import pull as bring_here

    store = context.obj.store
    if not store.settings.store.url:
        raise typer.BadParameter("this home is its store: expected store.url in memstate.toml, or $MEMSTATE_STORE_URL")
    with live_progress(doing="pull"):
        state, done = bring_here(store, check=check)
    document = {
        "url": store.settings.store.url,
        "state": None if state is None else state.number,
        "state_hash": None if state is None else state.state_hash,
        "fetched": {"files": done.fetched, "bytes": done.fetched_bytes},
        "waiting_again": done.waiting,
        "discarded": None if done.discarded is None else str(done.discarded),
    }
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["state"] is None:
        yield f"{document['url']}: no store is there yet"
        return
    fetched = document["fetched"]
    size = f"{fetched['bytes'] / (1 << 20):,.1f} MiB"
    yield f"{document['url']}: state {document['state']:,}, fetched {fetched['files']:,} files, {size}"
    yield f"state hash: {document['state_hash'] or 'nothing is served'}"
    if document["waiting_again"]:
        yield f"read again by the next run, since the store never got it: {', '.join(document['waiting_again'])}"
    if document["discarded"]:
        yield f"what the store never got was set aside in {document['discarded']}"
