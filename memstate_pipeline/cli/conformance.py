"""`memstate conformance`: how far a memory system keeps the conditions C1 to C6, over an adversarial trajectory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_core.model.quantity import quantity
from memstate_pipeline.cli.shared.errors import missing_extra, report
from memstate_pipeline.cli.shared.output import Json, note, show

if TYPE_CHECKING:
    from memstate_core.conformance import Report, Trajectory

_EXTRAS = dict.fromkeys(("mem0", "qdrant_client"), "conformance") | dict.fromkeys(
    ("fastapi", "uvicorn", "prometheus_client", "opentelemetry", "httpx2", "tenacity"), "client,serve"
)
"""The extras that bring a package: that of mem0, and those of memstate's server with its client."""
_MISSED = 4
_WIDTH = 14


def conformance(
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="System to test: memstate (default), overwrite, append-only, mem0, or MODULE:FACTORY; repeatable.",
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Test the empty store of a running server; needs --night.")
    ] = None,
    night: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Shell command that runs a night of that server; {now} is its time."),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Pause before each night of a running server, for its journal."),
    ] = 32.0,
    turns: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Turns of the trajectory.")] = 500,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the trajectory.")] = 0,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, metavar="SHARE", help="Least score of each condition.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Score a memory system on the conditions C1 to C6.

    Takes it through a trajectory of late, contradictory, repeated and withdrawn statements, and compares what it
    answers with the truth. memstate is tested in a temporary store. Exits with 4 if a condition has less than
    --min-score.
    """
    from memstate_core.conformance import trajectory

    if (url is None) != (night is None):
        raise typer.BadParameter("--url and --night go together: a running server, and what runs its nights")
    names = adapter or ["memstate"]
    if url is not None and names != ["memstate"]:
        raise typer.BadParameter("--url tests a memstate server; leave --adapter out")
    drawn = trajectory(turns, seed)
    remote = None if url is None or night is None else (url, night, settle)
    try:
        reports = [_report(name, drawn, remote) for name in names]
    except ModuleNotFoundError as error:
        if (extras := _EXTRAS.get((error.name or "").partition(".")[0])) is None:
            raise
        report(missing_extra(error, extras), as_json)
        raise typer.Exit(1) from None
    document = _document(drawn, reports, min_score)
    show(document, as_json, lambda: _lines(document))
    if document["missed"]:
        raise typer.Exit(_MISSED)


def _report(name: str, drawn: Trajectory, remote: tuple[str, str, float] | None) -> Report:
    from tempfile import TemporaryDirectory

    from memstate_core.conformance import run
    from memstate_pipeline.conformance_store import opened_system

    with TemporaryDirectory(prefix="memstate-conformance-") as folder:
        try:
            opened = opened_system(name, drawn.bound, Path(folder), remote)
        except ValueError as error:
            raise typer.BadParameter(f"--adapter {name}: {error}") from None
        with opened as system:
            return run(system, drawn, lambda done: _progress(f"{name}: {done:,} of {drawn.turns:,} turns"))


def _progress(line: str) -> None:
    """Shows how far a run is, on a terminal only."""
    if sys.stderr.isatty():
        note(line)


def _document(drawn: Trajectory, reports: list[Report], least: float | None) -> dict[str, Any]:
    missed = [
        f"{each.system}: {name} is {found.score:.3f}, expected at least {least:.3f}"
        for each in reports
        for name, found in each.conditions.items()
        if least is not None and found.score < least
    ]
    scenario = {"turns": drawn.turns, "nights": len(drawn.days), "seed": drawn.seed, "bound": drawn.bound}
    return {**scenario, "systems": [each.document() for each in reports], "missed": missed}


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    from memstate_core.conformance.report import CONDITIONS

    systems = document["systems"]
    turns, nights = (quantity(document[name], name) for name in ("turns", "nights"))
    yield f"{turns}, {nights}, seed {document['seed']}"
    yield f"{'':32}" + "".join(f"{each['system']:>{_WIDTH}}" for each in systems)
    for name, title in CONDITIONS.items():
        scores = "".join(f"{each['conditions'][name]['score']:>{_WIDTH}.3f}" for each in systems)
        yield f"{name}  {title:28}{scores}"
    for each in systems:
        for name, found in each["conditions"].items():
            kinds = ", ".join(f"{kind} {of['held']:,}/{of['checked']:,}" for kind, of in found["kinds"].items())
            yield f"{each['system']} {name}: {kinds or 'nothing was checked; take more turns'}"
            firsts = {one["kind"]: one for one in reversed(found["examples"])}
            yield from (f"  turn {one['turn']}, {one['about']}: {one['problem']}" for one in firsts.values())
    yield from (f"missed  {sentence}" for sentence in document["missed"])
