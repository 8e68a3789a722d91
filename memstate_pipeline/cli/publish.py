"""The `publish` command: the served snapshots at a URL, for replicas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress


def publish(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="s3://, gs://, az:// or file://, or a folder. Default: publish.url."),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Replace what another copy of the store published there.")
    ] = False,
    resend: Annotated[
        bool, typer.Option("--resend", help="Send every object again, also those that are there.")
    ] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Publish the served snapshots to object storage.

    `memstate serve --replica-of URL` serves them from there. Hashes of the API keys go with them, so that replicas
    accept the same keys. Sends only what is not there yet; running it again completes what was interrupted.
    """
    from memstate_core.night.publication.keys import publish_keys
    from memstate_core.night.publication.note import publication_url
    from memstate_core.night.publication.upload import publish_to
    from memstate_pipeline.writers import writing

    store = context.obj.begun_store
    where = url or publication_url(store.home, store.settings)
    if not where:
        raise typer.BadParameter("expected a URL, or publish.url in memstate.toml")
    with live_progress(doing="publish"), writing(store, "publish", whole=True):
        outcomes = publish_to(store, where, take_over=take_over, resend=resend)
        if store.settings.store.url:
            publish_keys(store, where)
    document = {
        "url": where,
        "shards": [
            {
                "shard": each.shard,
                "snapshot": each.snapshot,
                "sent": {"objects": each.sent, "bytes": each.sent_bytes},
                "removed": each.removed,
                "moved": each.moved,
            }
            for each in outcomes
        ],
    }
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for each in document["shards"]:
        if each["snapshot"] is None:
            yield f"{each['shard']}: nothing is served"
            continue
        sent = f"sent {each['sent']['objects']:,} objects, {each['sent']['bytes'] / (1 << 20):,.1f} MiB"
        verb = "published" if each["moved"] else "was published already:"
        yield f"{verb} {each['snapshot']} to {document['url']}: {sent}; removed {each['removed']:,}"
