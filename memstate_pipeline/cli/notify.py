"""The `notify` command: where notifications of nights go, and a test message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, show

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def notify(
    context: typer.Context,
    test: Annotated[bool, typer.Option("--test", help="Send a test message over every channel.")] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show where notifications go and which faults last.

    With --test, sends a test message, and exits with 1 if a channel does not take it.
    """
    from memstate_pipeline.notify.deliver import channels
    from memstate_pipeline.notify.notifier import notify_test

    store: Store = context.obj.existing_store
    if test and not store.settings.notify.configured:
        raise typer.BadParameter("nothing to test: set webhook_url or smtp_host in section [notify] of memstate.toml")
    results = notify_test(store, datetime.now(UTC)) if test else None
    document = _document(store, channels(store.settings.notify), results)
    show(document, as_json, lambda: _lines(document))
    if results is not None and any(results.values()):
        raise typer.Exit(1)


def _document(store: Store, channels: Mapping[str, str], results: Mapping[str, str | None] | None) -> dict[str, Any]:
    from memstate_pipeline.notify.history import read_known

    known = read_known(store.home)
    failed = {name: entry.problem for name, entry in known.undelivered.items()}
    return {
        "tested": results is not None,
        "channels": [{"channel": name, "to": to, "problem": failed.get(name)} for name, to in channels.items()],
        "faults": [
            {"shard": shard, **{key: getattr(fault, key) for key in ("kind", "name", "message", "since", "sent_at")}}
            for shard, state in known.shards.items()
            for fault in state.faults.values()
        ],
    }


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    verb = "delivered" if document["tested"] else "configured"
    for channel in document["channels"]:
        state = verb if channel["problem"] is None else f"not delivered: {channel['problem']}"
        yield f"{channel['channel']}  {channel['to']}  {state}"
    if not document["channels"]:
        yield "no notifications are configured; section [notify] of memstate.toml"
    for fault in document["faults"]:
        named = f"{fault['name']}: " if fault["name"] else ""
        yield f"lasts since {fault['since']}: {fault['shard']}  {named}{fault['message']}"
