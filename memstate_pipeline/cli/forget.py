"""Manual overrides of forgetting: the commands restore and pin."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.bound import bound_warnings
from memstate_pipeline.cli.shared.corrections import correcting, publish, published_lines
from memstate_pipeline.cli.shared.options import Now, moment
from memstate_pipeline.cli.shared.output import Json, show

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store

Topics = Annotated[
    list[str], typer.Argument(metavar="TOPIC_ID", help="Topics, aliases, topics merged away, or topic_keys.")
]


def restore(context: typer.Context, topic_ids: Topics, now: Now = None, as_json: Annotated[bool, Json] = False) -> None:
    """Restore topics from any step of forgetting, and publish.

    Restores archived topics, detached fields and edges, and summarised histories. Counts as an access.
    """
    from memstate_core.forget.manual_actions import restore_decisions

    def decide(served: Served, topics: list[str], at: datetime) -> pl.DataFrame:
        decisions = restore_decisions(served, topics, "restored manually", used_at=at)
        if decisions.height:
            _record_access(store, served, topics, at)
        return decisions

    store: Store = context.obj.store
    published, named = _decide(store, "restore", topic_ids, moment(now), decide)
    show({**published, "restored": named}, as_json, lambda: _lines("restored", named, published))


def pin(
    context: typer.Context,
    topic_ids: Topics,
    off: Annotated[bool, typer.Option("--off", help="Unpin.")] = False,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Pin topics so that they are never forgotten, and publish.

    Pinned topics are restored, and never archived, detached or summarised. Pins take precedence over
    max_active_topics; a warning says where they exceed it.
    """
    import polars as pl

    from memstate_core.forget.manual_actions import pin_decisions, restore_decisions

    def decide(served: Served, topics: list[str], _: datetime) -> pl.DataFrame:
        pins = pin_decisions(served, topics, on=not off)
        return pins if off else pl.concat([restore_decisions(served, topics, "pinned manually"), pins])

    store: Store = context.obj.store
    published, named = _decide(store, "pin", topic_ids, moment(now), decide)
    action, document = "unpinned" if off else "pinned", {**published, "warnings": _bound_warnings(store, named)}
    show({**document, action: named}, as_json, lambda: _lines(action, named, document))


def _decide(
    store: Store,
    command: str,
    topic_ids: Sequence[str],
    at: datetime | None,
    decide: Callable[[Served, list[str], datetime], pl.DataFrame],
) -> tuple[dict[str, Any], list[str]]:
    """Decides about topics and publishes the result; decisions that change nothing publish nothing.

    Raises:
        TopicNotFound: an id or key is unknown; nothing was recorded.
        TopicAmbiguous: several topics have a key; nothing was recorded.
    """
    with correcting(store, command) as shards:
        named = _located(shards, topic_ids)
        when = at or max(datetime.now(UTC), *(served.snapshot.manifest.now for served in shards.values()))
        rows = {shard: decide(shards[shard], topics, when) for shard, topics in named.items()}
        changed = {shard: decided for shard, decided in rows.items() if decided.height}
        published = publish(store, shards, changed, when, f"memstate {command}")
    return published, [topic for topics in named.values() for topic in topics]


def _record_access(store: Store, served: Served, topics: Sequence[str], at: datetime) -> None:
    """Records an access to restored topics, once for each snapshot.

    The beginning of the segment's name follows from snapshot and topics. So a command that was killed before it
    published finds its segment when it is run again; one that was killed later has nothing left to restore.
    """
    from memstate_core.ingest.accesses.journal import AccessJournal
    from memstate_core.model.ids import sha256_text

    name = f"restore-{sha256_text(chr(10).join([served.snapshot.name, *sorted(topics)]))[:32]}"
    earlier = [path for folder in (store.home.accesses, store.home.collected) for path in folder.glob(f"{name}*")]
    if any(path.read_bytes().count(b"\n") > len(topics) for path in earlier):  # the heading, and a line for each
        return
    with AccessJournal(store.home.accesses, f"{name}-{uuid.uuid4()}") as journal:
        for topic in topics:
            journal.record(topic, at=at, source="restore")


def _bound_warnings(store: Store, topics: Sequence[str]) -> list[str]:
    """Warnings about the scopes of some topics."""
    from memstate_core.run.served_state import read_served

    shards = read_served(store).values()
    scopes = {scope for served in shards for scope in served.topics.filter(served.topics["id"].is_in(topics))["scope"]}
    return bound_warnings([served.snapshot for served in shards], scopes)


def _located(shards: Mapping[str, Served], topic_ids: Sequence[str]) -> dict[str, list[str]]:
    from memstate_core.run.served_topics import served_topic

    found: dict[str, list[str]] = {}
    for name in topic_ids:
        shard, topic = served_topic(shards, name)
        found.setdefault(shard, []).append(topic)
    return {shard: list(dict.fromkeys(topics)) for shard, topics in found.items()}


def _lines(action: str, named: Sequence[str], published: Mapping[str, Any]) -> list[str]:
    return [f"{action}: {', '.join(named)}", *published_lines(published)]
