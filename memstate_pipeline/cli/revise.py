"""Commands with which a person has the last word: merges, undo, review, confirm."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.corrections import deciding, named_topic, publish, published_line
from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.text import merge_lines, pair_lines, stale_lines
from memstate_pipeline.cli.verdicts import Verdict, ask_verdicts, given_verdicts
from memstate_pipeline.cli.verdicts import located as located_verdicts
from memstate_pipeline.cli.write import Now, moment

if TYPE_CHECKING:
    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store

_UNDECIDED = "nothing was decided"


def merges(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Those that were taken back too.")] = False,
    topic: Annotated[str | None, typer.Option(metavar="ID", help="Merges that this topic had a part in.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List what was merged, newest first, with the reasons; `memstate undo ID` takes one back."""
    from memstate_core.revise.merge_history import merge_documents
    from memstate_core.run.served_state import read_served

    listed = merge_documents(list(read_served(context.obj.store).values()), undone_too=all_, topic=topic)
    show({"merges": listed}, as_json, lambda: merge_lines(listed))


def undo(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="ID", help="A merge, a topic merged away, or one archived, detached or summarised."),
    ],
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Take a merge or a step of forgetting back, and publish."""
    from memstate_core.revise.undo import nothing_to_undo, undo_decisions

    at, store = moment(now), context.obj.store
    with deciding(store, "undo") as shards:
        found = {shard: rows for shard, served in shards.items() if (rows := undo_decisions(served, name)) is not None}
        if not found:
            raise nothing_to_undo(name, list(shards.values()))
        told = publish(store, shards, found, at, "taken back by a person")
    back = named_topic(store, next(iter(found.values()))["topic_id"][0])
    kind = " and ".join(next(iter(found.values()))["kind"].unique(maintain_order=True))
    lines = [f"{kind}: {back['title']}  [{back['id']}]", published_line(told)]
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
    from memstate_core.run.served_state import read_served

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
    lines = [f"verdicts recorded: {len(told['decided'])}", published_line(told)] if told["decided"] else [_UNDECIDED]
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
    from memstate_core.revise.undo import confirm_decisions, stale_documents, stale_topics
    from memstate_core.run.served_state import read_served

    at, store = moment(now), context.obj.store
    if not topic_ids:
        waiting = stale_documents(list(read_served(store).values()))
        show({"stale": waiting}, as_json, lambda: stale_lines(waiting))
        return
    with deciding(store, "confirm") as shards:
        named = stale_topics(list(shards.values()), topic_ids)
        rows = {shard: confirm_decisions(shards[shard], topics) for shard, topics in named.items()}
        told = publish(store, shards, rows, at, "confirmed by a person")
    confirmed = [topic for topics in named.values() for topic in topics]
    show(
        {**told, "confirmed": confirmed}, as_json, lambda: [f"confirmed: {', '.join(confirmed)}", published_line(told)]
    )


def _judge(store: Store, verdicts: Sequence[Verdict], at: datetime | None) -> dict[str, Any]:
    from memstate_core.revise.verdicts import verdict_decisions

    with deciding(store, "review") as shards:
        by_shard = located_verdicts(shards, verdicts)
        if not by_shard:
            return {"decided": []}
        rows = {shard: verdict_decisions(shards[shard], said) for shard, said in by_shard.items()}
        told = publish(store, shards, rows, at, "judged by a person")
    decided = [{"a": a, "b": b, "verdict": word} for said in by_shard.values() for a, b, word in said]
    return {**told, "decided": decided}


def _waiting(shards: Mapping[str, Served], limit: int) -> tuple[list[dict[str, Any]], int]:
    """The first pairs that wait, of all shards together, and how many wait."""
    from memstate_core.revise.pair_view import side_by_side
    from memstate_core.revise.verdicts import open_pairs

    found = {shard: open_pairs(served) for shard, served in shards.items()}
    pairs = [pair for shard, rows in found.items() for pair in side_by_side(shards[shard], rows.head(limit))]
    pairs.sort(key=lambda pair: (pair["skipped"], pair["value"] is None, -(pair["value"] or 0.0)))
    return pairs[:limit], sum(rows.height for rows in found.values())


def _pairs_told(pairs: Sequence[dict[str, Any]], waiting: int) -> list[str]:
    lines = [line for pair in pairs for line in [*pair_lines(pair), ""]]
    return [*lines, f"pairs that wait for a verdict: {waiting}; memstate review --decide A:B=same (or different, skip)"]
