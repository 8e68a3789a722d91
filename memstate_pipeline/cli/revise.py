"""Commands with which a person has the last word: merges, undo, review, confirm."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.verdicts import Verdict, ask_verdicts, given_verdicts
from memstate_pipeline.cli.verdicts import located as located_verdicts
from memstate_pipeline.cli.words import merge_lines, pair_lines, stale_lines
from memstate_pipeline.cli.write import Now, moment

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.revise.served import Served
    from memstate_core.state.store import Store

_UNDECIDED = "nothing was decided"


def merges(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Those that were taken back too.")] = False,
    topic: Annotated[str | None, typer.Option(metavar="ID", help="Merges that this topic had a part in.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List what was merged, newest first, with the reasons; `memstate undo ID` takes one back."""
    from memstate_core.revise.listing import merge_documents
    from memstate_core.revise.served import read_served

    listed = merge_documents(list(read_served(context.obj.store).values()), undone_too=all_, topic=topic)
    show({"merges": listed}, as_json, lambda: merge_lines(listed))


def undo(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A merge, a topic that was merged away, or an archived topic.")
    ],
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Take a merge or an archiving back, and publish."""
    from memstate_core.revise.undo import nothing_to_undo, undo_decisions

    at, store = moment(now), context.obj.store
    with _deciding(store, "undo") as shards:
        found = {shard: rows for shard, served in shards.items() if (rows := undo_decisions(served, name)) is not None}
        if not found:
            raise nothing_to_undo(name, list(shards.values()))
        told = _publish(store, shards, found, at, "taken back by a person")
    back = _named(store, next(iter(found.values()))["topic_id"][0])
    kind = next(iter(found.values()))["kind"][0]
    lines = [f"{kind}: {back['title']}  [{back['id']}]", _published(told)]
    show({**told, "action": kind, "topic": back}, as_json, lambda: lines)


def review(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="Pairs to show or ask about.")] = 20,
    decide: Annotated[
        list[str] | None, typer.Option(metavar="A:B=VERDICT", help="Two topics and same, different or skip.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help='Verdicts as JSON Lines: {"a": ID, "b": ID, "verdict": "same"}.')
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show pairs of topics that may be one, the most telling first, and record verdicts on them."""
    from memstate_core.revise.served import read_served

    at, store = moment(now), context.obj.store
    verdicts = given_verdicts(decide or [], file)
    if not decide and file is None:
        pairs, waiting = _waiting(read_served(store), limit)
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            show({"open": waiting, "pairs": pairs}, as_json, lambda: _pairs_told(pairs, waiting))
            return
        verdicts = ask_verdicts(pairs)
    if not verdicts:
        show({"decided": []}, as_json, lambda: [_UNDECIDED])
        return
    told = _judge(store, verdicts, at)
    lines = [f"verdicts recorded: {len(told['decided'])}", _published(told)] if told["decided"] else [_UNDECIDED]
    show(told, as_json, lambda: lines)


def confirm(
    context: typer.Context,
    topic_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC_ID]…", help="Stale topics; lists them without any.")
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Say that topics marked as stale still hold, and publish; without topics, list those that are marked."""
    from memstate_core.revise.served import read_served
    from memstate_core.revise.undo import confirm_decisions, stale_documents, stale_topics

    at, store = moment(now), context.obj.store
    if not topic_ids:
        waiting = stale_documents(list(read_served(store).values()))
        show({"stale": waiting}, as_json, lambda: stale_lines(waiting))
        return
    with _deciding(store, "confirm") as shards:
        named = stale_topics(list(shards.values()), topic_ids)
        rows = {shard: confirm_decisions(shards[shard], topics) for shard, topics in named.items()}
        told = _publish(store, shards, rows, at, "confirmed by a person")
    confirmed = [topic for topics in named.values() for topic in topics]
    show({**told, "confirmed": confirmed}, as_json, lambda: [f"confirmed: {', '.join(confirmed)}", _published(told)])


@contextmanager
def _deciding(store: Store, command: str) -> Iterator[dict[str, Served]]:
    """Holds the store and what it serves, folded again first where nothing is left of what was published."""
    from memstate_core.model.errors import StoreNotFound
    from memstate_core.revise.served import read_served
    from memstate_core.state.lock import exclusive
    from memstate_core.state.rebuild import ensure_served

    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    with exclusive(store.home.lock, f"process {os.getpid()} (memstate {command})"):
        for shard in store.shards:
            ensure_served(store, shard, f"rebuild-{uuid.uuid4()}")
        yield read_served(store)


def _publish(
    store: Store, shards: Mapping[str, Served], rows: Mapping[str, pl.DataFrame], at: datetime | None, why: str
) -> dict[str, Any]:
    """Records decisions by shard; without a time at the machine's, though never before what is served."""
    from memstate_core.state.correct import correct
    from memstate_core.state.snapshots import combined_state_hash, served

    run_id = f"correction-{uuid.uuid4()}"
    for shard, decided in rows.items():
        when = at or max(datetime.now(UTC), shards[shard].snapshot.manifest.now)
        correct(store, shard, run_id, when, decided, why)
    manifests = [snapshot.manifest for snapshot in served(store.home, store.shards)]
    state = combined_state_hash({manifest.shard: manifest.state_hash for manifest in manifests})
    names = ",".join(f"{manifest.shard}/{manifest.number}" for manifest in manifests)
    return {"run_id": run_id, "snapshot": names, "state_hash": state}


def _judge(store: Store, verdicts: Sequence[Verdict], at: datetime | None) -> dict[str, Any]:
    from memstate_core.revise.judgements import verdict_decisions

    with _deciding(store, "review") as shards:
        by_shard = located_verdicts(shards, verdicts)
        if not by_shard:
            return {"decided": []}
        rows = {shard: verdict_decisions(shards[shard], said) for shard, said in by_shard.items()}
        told = _publish(store, shards, rows, at, "judged by a person")
    decided = [{"a": a, "b": b, "verdict": word} for said in by_shard.values() for a, b, word in said]
    return {**told, "decided": decided}


def _waiting(shards: Mapping[str, Served], limit: int) -> tuple[list[dict[str, Any]], int]:
    """The first pairs that wait, of all shards together, and how many wait."""
    from memstate_core.revise.judgements import open_pairs
    from memstate_core.revise.sides import side_by_side

    found = {shard: open_pairs(served) for shard, served in shards.items()}
    pairs = [pair for shard, rows in found.items() for pair in side_by_side(shards[shard], rows.head(limit))]
    pairs.sort(key=lambda pair: (pair["skipped"], pair["value"] is None, -(pair["value"] or 0.0)))
    return pairs[:limit], sum(rows.height for rows in found.values())


def _pairs_told(pairs: Sequence[dict[str, Any]], waiting: int) -> list[str]:
    lines = [line for pair in pairs for line in [*pair_lines(pair), ""]]
    return [*lines, f"pairs that wait for a verdict: {waiting}; memstate review --decide A:B=same (or different, skip)"]


def _named(store: Store, topic_id: str) -> dict[str, str]:
    """The topic that answers for an id now."""
    from contextlib import ExitStack

    from memstate_core.retrieve.topic import resolve
    from memstate_pipeline.cli.read import open_readers

    with ExitStack() as stack:
        topic = resolve(open_readers(store, stack), topic_id).topic
    return {"id": topic["id"][0], "title": topic["title"][0]}


def _published(told: Mapping[str, Any]) -> str:
    return f"published {told['snapshot']}: state {told['state_hash']}"
