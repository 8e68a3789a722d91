"""The `simulate` command: another policy compared with the current one, night by night."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, as_uri, note, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.terminal import one_line

if TYPE_CHECKING:
    from memstate_core.run.store import Store

ROWS = 15
"""Maximum number of rows that are printed; the JSON has every night."""
NAMED = 5
"""Maximum number of topics of each list that are printed."""


def simulate(
    context: typer.Context,
    policies: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="TOML file with a [policy] section.")],
    days: Annotated[int, typer.Option(min=1, max=3660, metavar="N", help="Number of days, one night each.")],
    now: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Last day, or with --forward the day before the first, ISO 8601. Default: the machine's clock.",
        ),
    ] = None,
    forward: Annotated[
        bool,
        typer.Option("--forward", help="Project the coming days without new evidence instead of replaying past ones."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write a plot to this file, .svg or .html.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Compare another policy with the current one.

    Replays past nights, or projects coming ones, and shows what each policy keeps, archives and misses. Changes
    nothing.
    """
    from memstate_core.forget.simulation.policy_comparison import compare_policies
    from memstate_core.policy.settings import load_policy
    from memstate_pipeline.report.simulation_plot import SUFFIXES, write_plot

    if plot is not None and plot.suffix not in SUFFIXES:
        raise typer.BadParameter(
            f"{str(plot)!r} is not a plot file: expected a name that ends in {' or '.join(SUFFIXES)}"
        )
    store: Store = context.obj.store
    other, at = load_policy(policies), moment(now) or _latest(store)
    note("Simulating both policies …")
    with live_progress(doing="simulate"):
        document = compare_policies(store, other, at, days, forward=forward)
    if plot is not None:
        write_plot(document, plot)
    answer = {**document, "plot": None if plot is None else str(plot)}
    show(answer, as_json, lambda: [*_lines(document), *([f"plot: {as_uri(plot)}"] if plot else [])])


def _latest(store: Store) -> datetime:
    """The machine's clock, or the time of the served snapshot if that is later."""
    from memstate_core.state.current import served

    return max(datetime.now(UTC), *(snapshot.manifest.now for snapshot in served(store.home, store.shards)))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    of = "the past" if document["mode"] == "replay" else "the coming"
    days = f"{document['days']:,} days" if document["days"] > 1 else "day"
    yield f"{document['mode']} of {of} {days}, {document['from']} to {document['to']}"
    yield "each cell: present policy | other policy; archivals, returns and missed count from the row above"
    yield from _table(_sampled(document), document["difference"])
    for side in ("present", "other"):
        yield from _listed(f"most missed under the {side} policy", document[side]["most_missed"])
    back, gone = document["would_come_back"], document["would_go"]
    yield f"archived only by the present policy, so they would come back: {back['count']:,}"
    yield from _named(back["topics"], back["count"])
    yield f"archived only by the other policy, so they would go: {gone['count']:,}"
    yield from _named(gone["topics"], gone["count"])


def _sampled(document: Mapping[str, Any]) -> list[tuple[str, dict[str, tuple[int, int]]]]:
    """Evenly spaced nights and the totals: a title, and for each column the figures of both policies."""
    from memstate_core.forget.simulation.policy_comparison import FLOWS

    sides = document["present"], document["other"]
    count = document["days"]
    ends = sorted({round(count * row / min(ROWS, count)) for row in range(1, min(ROWS, count) + 1)})
    rows = []
    for begin, end in zip([0, *ends], ends, strict=False):
        parts = [side["nights"][begin:end] for side in sides]
        cells = {
            name: tuple(sum(n[name] for n in part) if name in FLOWS else part[-1][name] for part in parts)
            for name in document["difference"]
        }
        rows.append((parts[0][-1]["at"][:10], cells))
    return [*rows, ("total", {name: tuple(side["totals"][name] for side in sides) for name in document["difference"]})]


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
    return f"“{one_line(row['title'] or '')}” ({row['topic_id']})"
