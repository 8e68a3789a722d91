"""The command that rehearses another policy beside the present one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, as_uri, note, show
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from memstate_core.run.store import Store

ROWS = 15
"""At most so many nights are told to people; the JSON has all."""
NAMED = 5
"""So many topics of each list are told to people."""


def simulate(
    context: typer.Context,
    policies: Annotated[Path, typer.Option(dir_okay=False, help="TOML with [policy], the policy to try.")],
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days, one night each.")],
    now: Annotated[
        str | None, typer.Option(help="The last day, or with --forward the day before; the machine's clock without it.")
    ] = None,
    forward: Annotated[
        bool, typer.Option("--forward", help="The coming days with nothing new, instead of the past ones.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(dir_okay=False, help="Draw it into this file, .svg or .html.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show what another policy would have kept, archived and missed, beside the present one; changes nothing."""
    from memstate_core.forget.simulation.policy_comparison import simulate as rehearse
    from memstate_core.policy.settings import load_policy
    from memstate_pipeline.report.simulation_plot import SUFFIXES, write_plot

    if plot is not None and plot.suffix not in SUFFIXES:
        raise typer.BadParameter(f"{str(plot)!r} is no plot file: expected a name that ends in {' or '.join(SUFFIXES)}")
    store: Store = context.obj.store
    other, at = load_policy(policies), moment(now) or _latest(store)
    note("Rehearsing both policies …")
    document = rehearse(store, other, at, days, forward=forward)
    if plot is not None:
        write_plot(document, plot)
    told = {**document, "plot": None if plot is None else str(plot)}
    show(told, as_json, lambda: [*_lines(document), *([f"plot: {as_uri(plot)}"] if plot else [])])


def _latest(store: Store) -> datetime:
    """The clock, or the time of what is served where that is later."""
    from memstate_core.state.snapshots import served

    return max(datetime.now(UTC), *(snapshot.manifest.now for snapshot in served(store.home, store.shards)))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    of = "the past" if document["mode"] == "replay" else "the coming"
    days = f"{document['days']:,} days" if document["days"] > 1 else "day"
    yield f"{document['mode']} of {of} {days}, {document['from']} to {document['to']}"
    yield "each cell: present policy | other policy; archivals, returns and missed since the row before"
    yield from _table(_sampled(document), document["difference"])
    for side in ("present", "other"):
        yield from _listed(f"most missed under the {side} policy", document[side]["most_missed"])
    back, gone = document["would_come_back"], document["would_go"]
    yield f"archived by the present policy only, so that they would come back: {back['count']:,}"
    yield from _named(back["topics"], back["count"])
    yield f"archived by the other policy only, so that they would go: {gone['count']:,}"
    yield from _named(gone["topics"], gone["count"])


def _sampled(document: Mapping[str, Any]) -> list[tuple[str, dict[str, tuple[int, int]]]]:
    """Nights spread evenly over all, and the totals: a title, and by column the figures of both policies."""
    from memstate_core.forget.simulation.policy_comparison import FLOWS

    sides = document["present"], document["other"]
    count = document["days"]
    ends = sorted({round(count * row / min(ROWS, count)) for row in range(1, min(ROWS, count) + 1)})
    rows = []
    for begin, end in zip([0, *ends], ends, strict=False):
        stretches = [side["nights"][begin:end] for side in sides]
        cells = {
            name: tuple(sum(n[name] for n in part) if name in FLOWS else part[-1][name] for part in stretches)
            for name in document["difference"]
        }
        rows.append((stretches[0][-1]["at"][:10], cells))
    return [*rows, ("in all", {name: tuple(side["totals"][name] for side in sides) for name in document["difference"]})]


def _table(rows: Sequence[tuple[str, Mapping[str, tuple[int, int]]]], difference: Mapping[str, int]) -> Iterator[str]:
    names = list(difference)
    cells = [["night", *names]]
    cells += [[title, *(" | ".join(f"{value:,}" for value in row[name]) for name in names)] for title, row in rows]
    cells.append(["difference", *(f"{difference[name]:+,}" for name in names)])
    widths = [max(len(line[place]) for line in cells) for place in range(len(names) + 1)]
    for title, *figures in cells:
        aligned = [f"{figure:>{width}}" for figure, width in zip(figures, widths[1:], strict=True)]
        yield "  ".join([f"{title:<{widths[0]}}", *aligned])


def _listed(title: str, missed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if missed:
        yield f"{title}:"
        yield from (f"  {row['times']:>5,}  {_title(row)}" for row in missed[:NAMED])


def _named(topics: Sequence[Mapping[str, Any]], count: int) -> Iterator[str]:
    yield from (f"  {_title(row)}" for row in topics[:NAMED])
    if count > NAMED:
        yield f"  and {count - NAMED:,} more"


def _title(row: Mapping[str, Any]) -> str:
    return f"“{' '.join((row['title'] or '').split())}” ({row['topic_id']})"
