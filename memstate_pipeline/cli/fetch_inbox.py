"""The `fetch-inbox` command: what replicas accepted, from the URL into the home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress


def fetch_inbox(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="s3://, gs://, az:// or file://, or a folder. Default: publish.url."),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Fetch what replicas accepted into the inbox.

    Nights do so by themselves, where publish.accept_writes is set. What the ledger has is removed at the URL; running
    it again completes what was interrupted.
    """
    from memstate_core.night.publication import fetch
    from memstate_core.night.publication.note import publication_url
    from memstate_pipeline.writers import writing

    store = context.obj.store
    where = url or publication_url(store.home, store.settings)
    if not where:
        raise typer.BadParameter("expected a URL, or publish.url in memstate.toml")
    with live_progress(doing="fetch-inbox"), writing(store, "fetch-inbox"):
        found = fetch.fetch_inbox(store, where, datetime.now(UTC))
    document = {
        "url": where,
        "fetched": found.fetched,
        "removed": found.removed,
        "waiting": found.waiting,
        "others": found.others,
    }
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    fetched, removed, waiting = (f"{document[name]:,}" for name in ("fetched", "removed", "waiting"))
    yield f"{document['url']}: fetched {fetched}, removed {removed} that the ledger has, {waiting} left until imported"
    if document["others"]:
        yield f"left alone, since no replica gives such names: {', '.join(document['others'])}"
