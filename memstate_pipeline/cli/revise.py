"""Manual revision: the commands merges, undo, review and confirm."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.judged_merges import review_merged
from memstate_pipeline.cli.needed_answers import needed_answers, needed_lines
from memstate_pipeline.cli.shared.corrections import correcting, named_topic, publish, published_lines
from memstate_pipeline.cli.shared.options import Now, moment
from memstate_pipeline.cli.shared.output import Json, show, show_lines
from memstate_pipeline.cli.shared.text import merge_lines, pair_lines, stale_lines
from memstate_pipeline.cli.spot_checks import check_lines, waiting_merges
from memstate_pipeline.cli.undo_file import undo_file
from memstate_pipeline.cli.undo_run import undo_run
from memstate_pipeline.cli.verdicts import Verdict, ask_verdicts, given_verdicts
from memstate_pipeline.cli.verdicts import located as located_verdicts

if TYPE_CHECKING:
    from memstate_core.run.store import Store

PAIRS_SHOWN = 20
_UNDECIDED = "no verdict was recorded"


def merges(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Include merges that were undone.")] = False,
    topic: Annotated[str | None, typer.Option(metavar="ID", help="Only merges of this topic.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List merges, newest first.

    Each says what agreed, what differed and how many others share it; `memstate undo ID` undoes it.
    """
    from memstate_core.revise.merge_history import merge_documents
    from memstate_core.run.served_state import read_served

    listed = merge_documents(list(read_served(context.obj.store).values()), undone_too=all_, topic=topic)
    show({"merges": listed}, as_json, lambda: merge_lines(listed))


def undo(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A merge, a topic merged away, archived, detached or summarised, or evidence that was set aside.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Merges to undo, all at once: an ID or {"id": ID} a line.'),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="RUN_ID", help="Undo the merges and steps of forgetting of this run.")
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Undo a merge or a step of forgetting, and publish.

    With --file or --run, undoes many decisions and publishes once.
    """
    at, store = moment(now), context.obj.store
    if sum(given is not None for given in (name, file, run)) != 1:
        raise typer.BadParameter("expected either ID, --file FILE or --run RUN_ID")
    if name is not None:
        _undo(store, name, at, as_json)
    elif file is not None:
        undo_file(store, file, at, as_json)
    elif run is not None:
        undo_run(store, run, at, as_json)


def review(
    context: typer.Context,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Maximum number of pairs and merges. Default: 20; --merged: all."),
    ] = None,
    merged: Annotated[
        bool, typer.Option("--merged", help="List automatic merges that today's model would not make.")
    ] = False,
    decide: Annotated[
        list[str] | None, typer.Option(metavar="A:B=VERDICT", help="Verdict on two topics: same, different or skip.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help='Verdicts as JSON Lines: {"a": ID, "b": ID, "verdict": "same"}.')
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List duplicates and merges to check, and record verdicts.

    The most informative pairs come first, then spot checks of merges. `same` confirms a merge, `different` undoes it.
    On a terminal, asks for a verdict on each; otherwise pass --decide or --file.
    """
    at, store = moment(now), context.obj.store
    if merged:
        if decide or file is not None:
            raise typer.BadParameter("--merged lists merges; it takes no --decide and no --file")
        review_merged(store, limit, as_json)
        return
    verdicts = given_verdicts(decide or [], file)
    if not decide and file is None:
        listed = _to_review(store, limit or PAIRS_SHOWN)
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            show(listed, as_json, lambda: _review_lines(listed))
            return
        show_lines(needed_lines(listed["confirmation"]))
        verdicts = ask_verdicts([*listed["pairs"], *listed["merged"]])
    if not verdicts:
        show({"decided": []}, as_json, lambda: [_UNDECIDED])
        return
    judged = _judge(store, verdicts, at)
    lines = (
        [f"verdicts recorded: {len(judged['decided'])}", *published_lines(judged)]
        if judged["decided"]
        else [f"{_UNDECIDED}: what was given is recorded already, or what is merged already is called the same"]
    )
    show(judged, as_json, lambda: lines)


def confirm(
    context: typer.Context,
    topic_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC_ID]", help="Stale topics. Without any, they are listed.")
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Confirm that stale topics are still valid, and publish.

    Without topics, lists the stale ones.
    """
    from memstate_core.revise.undo import confirm_decisions, stale_documents, stale_topics
    from memstate_core.run.served_state import read_served

    at, store = moment(now), context.obj.store
    if not topic_ids:
        waiting = stale_documents(list(read_served(store).values()))
        show({"stale": waiting}, as_json, lambda: stale_lines(waiting))
        return
    with correcting(store, "confirm") as shards:
        named = stale_topics(list(shards.values()), topic_ids)
        rows = {shard: confirm_decisions(shards[shard], topics) for shard, topics in named.items()}
        published = publish(store, shards, rows, at, "confirmed manually")
    confirmed = [topic for topics in named.values() for topic in topics]
    show(
        {**published, "confirmed": confirmed},
        as_json,
        lambda: [f"confirmed: {', '.join(confirmed)}", *published_lines(published)],
    )


def _undo(store: Store, name: str, at: datetime | None, as_json: bool) -> None:
    from memstate_core.revise.undo import nothing_to_undo, undo_decisions

    with correcting(store, "undo") as shards:
        found = {shard: rows for shard, served in shards.items() if (rows := undo_decisions(served, name)) is not None}
        if not found:
            raise nothing_to_undo(name, list(shards.values()))
        published = publish(store, shards, found, at, "undone manually")
    undone = next(iter(found.values()))
    topic_id = undone["topic_id"][0]
    back = None if topic_id is None else named_topic(store, topic_id)
    kind = " and ".join(undone["kind"].unique(maintain_order=True))
    shown = f"evidence {name}" if back is None else f"{back['title']}  [{back['id']}]"
    lines = [f"{kind}: {shown}", *published_lines(published)]
    show({**published, "action": kind, "topic": back}, as_json, lambda: lines)


def _judge(store: Store, verdicts: Sequence[Verdict], at: datetime | None) -> dict[str, Any]:
    from memstate_core.revise.verdicts import verdict_decisions
    from memstate_core.state.fold.decisions import judgements

    with correcting(store, "review") as shards:
        by_shard = located_verdicts(shards, verdicts)
        made = {shard: verdict_decisions(shards[shard], said) for shard, said in by_shard.items()}
        rows = {shard: decided for shard, decided in made.items() if decided.height}
        if not rows:
            return {"decided": []}
        published = publish(store, shards, rows, at, "judged manually")
    new = {frozenset(pair) for decided in rows.values() for pair in judgements(decided).select("a", "b").iter_rows()}
    decided = [{"a": a, "b": b, "verdict": word} for said in by_shard.values() for a, b, word in said]
    return {**published, "decided": [verdict for verdict in decided if frozenset((verdict["a"], verdict["b"])) in new]}


def _to_review(store: Store, limit: int) -> dict[str, Any]:
    """The first open pairs and merges to check of all shards, and what the answers so far say about others."""
    from memstate_core.revise.pair_view import side_by_side
    from memstate_core.revise.verdicts import open_pairs
    from memstate_core.run.served_state import read_served

    shards = read_served(store)
    waits = {shard: open_pairs(served) for shard, served in shards.items()}
    pairs = [pair for shard, rows in waits.items() for pair in side_by_side(shards[shard], rows.head(limit))]
    pairs.sort(key=lambda pair: (pair["skipped"], pair["value"] is None, -(pair["value"] or 0.0)))
    merged, checks = waiting_merges(store, shards, limit)
    return {
        "open": sum(rows.height for rows in waits.values()),
        "pairs": pairs[:limit],
        "merged": merged,
        "spot_checks": checks,
        "confirmation": needed_answers(store, shards, waits),
    }


def _review_lines(listed: Mapping[str, Any]) -> list[str]:
    return [
        *(line for pair in (*listed["pairs"], *listed["merged"]) for line in [*pair_lines(pair), ""]),
        f"open pairs: {listed['open']}; record a verdict with: memstate review --decide A:B=same (or different, skip)",
        *needed_lines(listed["confirmation"]),
        *check_lines(listed["spot_checks"]),
    ]
