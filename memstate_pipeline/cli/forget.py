"""Commands with which a person overrules forgetting: restore, pin."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.bound import bound_warnings
from memstate_pipeline.cli.corrections import deciding, publish, published_line
from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.write import Now, moment

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store

Topics = Annotated[list[str], typer.Argument(metavar="TOPIC_ID…", help="Topics; aliases and tombstones will do.")]


def restore(context: typer.Context, topic_ids: Topics, now: Now = None, as_json: Annotated[bool, Json] = False) -> None:
    """Bring topics back: archived ones, detached fields and links, summarised histories; counts as a use."""
    from memstate_core.forget.manual_actions import restore_decisions
    from memstate_core.ingest.accesses.journal import AccessJournal

    def decide(served: Served, topics: list[str], at: datetime) -> pl.DataFrame:
        with AccessJournal(store.home.accesses, f"restore-{uuid.uuid4()}") as journal:
            for topic in topics:
                journal.record(topic, at=at, source="restore")
        return restore_decisions(served, topics, "a person brought it back", used_at=at)

    store: Store = context.obj.store
    told, named = _decide(store, "restore", topic_ids, moment(now), decide)
    show({**told, "restored": named}, as_json, lambda: _lines("restored", named, told))


def pin(
    context: typer.Context,
    topic_ids: Topics,
    off: Annotated[bool, typer.Option("--off", help="Let go of them again.")] = False,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Keep topics for ever: they are never archived, detached or summarised; brings them back where they were.

    Pins win over `max_active_topics`: a scope may have more pinned topics than that, and this command then says so.
    """
    import polars as pl

    from memstate_core.forget.manual_actions import pin_decisions, restore_decisions

    def decide(served: Served, topics: list[str], _: datetime) -> pl.DataFrame:
        pins = pin_decisions(served, topics, on=not off)
        return pins if off else pl.concat([restore_decisions(served, topics, "a person wants it kept"), pins])

    store: Store = context.obj.store
    told, named = _decide(store, "pin", topic_ids, moment(now), decide)
    word, warnings = "unpinned" if off else "pinned", _bound_warnings(store, named)
    lines = [*_lines(word, named, told), *(f"warning: {warning}" for warning in warnings)]
    show({**told, word: named, "warnings": warnings}, as_json, lambda: lines)


def _decide(
    store: Store,
    command: str,
    topic_ids: Sequence[str],
    at: datetime | None,
    decide: Callable[[Served, list[str], datetime], pl.DataFrame],
) -> tuple[dict[str, Any], list[str]]:
    """Publishes what is decided about topics at a time; what is so already publishes nothing.

    Raises:
        TopicNotFound: an id names no topic; nothing was recorded.
    """
    with deciding(store, command) as shards:
        named = _located(shards, topic_ids)
        when = at or max(datetime.now(UTC), *(served.snapshot.manifest.now for served in shards.values()))
        rows = {shard: decide(shards[shard], topics, when) for shard, topics in named.items()}
        changed = {shard: decided for shard, decided in rows.items() if decided.height}
        told = publish(store, shards, changed, when, f"memstate {command}")
    return told, [topic for topics in named.values() for topic in topics]


def _bound_warnings(store: Store, topics: Sequence[str]) -> list[str]:
    """Whether the scopes of some topics are over the bound now."""
    from memstate_core.run.served_state import read_served

    shards = read_served(store).values()
    scopes = {scope for served in shards for scope in served.topics.filter(served.topics["id"].is_in(topics))["scope"]}
    return bound_warnings([served.snapshot for served in shards], scopes)


def _located(shards: Mapping[str, Served], topic_ids: Sequence[str]) -> dict[str, list[str]]:
    from memstate_core.model.errors import TopicNotFound

    found: dict[str, list[str]] = {}
    for name in topic_ids:
        homes = [(shard, topic) for shard, served in shards.items() if (topic := served.living(name))]
        if not homes:
            raise TopicNotFound(name, ", ".join(served.snapshot.name for served in shards.values()))
        found.setdefault(homes[0][0], []).append(homes[0][1])
    return {shard: list(dict.fromkeys(topics)) for shard, topics in found.items()}


def _lines(word: str, named: Sequence[str], told: Mapping[str, Any]) -> list[str]:
    return [f"{word}: {', '.join(named)}", published_line(told)]
