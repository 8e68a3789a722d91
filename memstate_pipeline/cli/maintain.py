"""The `maintain` command: the nightly job in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_core.model.quantity import quantity
from memstate_pipeline.cli.shared.options import Accept, Now, Why, accepted_gates, moment
from memstate_pipeline.cli.shared.output import Json, as_uri, note, show
from memstate_pipeline.cli.shared.priority import lower_priority
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.run.store import Store

STEPS = 11
"""Assets of a nightly run."""


def maintain(
    context: typer.Context,
    now: Now = None,
    accept: Accept = None,
    why: Why = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Run the nightly job now and publish a snapshot.

    A folder that does not exist, as where --home is mistyped, is refused; `memstate import` begins a store there.
    A night that a gate refuses can be let through once with --accept and --why. Where the setting
    schedule.skip_unchanged_days allows it, shards to which nothing was written have none.
    """
    from memstate_pipeline import run
    from memstate_pipeline.publication import unpublished

    at, given = moment(now), accepted_gates(accept, why)
    store: Store = context.obj.begun_store
    lower_priority(store)
    with step_progress(store):
        done = run.maintain(store, at, given=given)
    problems = unpublished(store)
    summary = {**done.summary, "not_published": problems} if problems else done.summary
    show(summary, as_json, lambda: summary_lines(summary, done.pages))
    if skipped := summary.get("skipped"):
        note(f"no night: {', '.join(skipped)}; nothing was written there since the last (schedule.skip_unchanged_days)")
    for problem in problems:
        note(problem)
    if problems:
        raise typer.Exit(1)


def summary_lines(summary: Mapping[str, Any], pages: Sequence[Path]) -> Iterator[str]:
    """The result of a run, as `maintain` and `apply` print it."""
    skipped = summary.get("skipped", [])
    published = [name for name in summary["snapshot"].split(",") if name.rpartition("/")[0] not in skipped]
    if not published:
        yield "nothing published: no shard has a change"
        return
    counts = ", ".join(quantity(count, name.replace("_", " ")) for name, count in summary["counts"].items() if count)
    yield f"published {','.join(published)}: {counts or 'nothing new'}"
    if summary["counts"]["merges"]:
        yield _expected_false(summary)
    passed = sum(check["passed"] for check in summary["checks"])
    yield f"{passed} of {len(summary['checks'])} checks passed, {sum(summary['seconds'].values()):.1f} s"
    yield from (f"{check['name']}: {check['detail']}" for check in summary["checks"] if not check["passed"])
    yield from _refused_input(summary)
    yield from (f"warning: {warning}" for warning in summary.get("warnings") or [])
    yield from (f"report: {as_uri(page)}" for page in pages)


def _refused_input(summary: Mapping[str, Any]) -> Iterator[str]:
    """How many rows were quarantined of what the inbox had since the last night."""
    ingest = summary.get("ingest") or {}
    if rows := ingest.get("quarantined"):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in ingest["reasons"].items())
        yield f"{rows:,} row{'s' * (rows != 1)} quarantined ({reasons}); `memstate quarantine` lists them"


def _expected_false(summary: Mapping[str, Any]) -> str:
    """The expected number of false merges, in all and by probability."""
    bands = [
        f"{row['merged']:,} at {row['probability_from']} or more ({row['expected_false']} false)"
        for row in summary["calibration"]
        if row["merged"]
    ]
    return f"expected false merges: {summary['expected_false_merges']}; merges by probability: {', '.join(bands)}"


def step_progress(store: Store) -> AbstractContextManager[None]:
    """Shows the progress of a nightly run of all shards while the block runs."""
    return live_progress(STEPS * len(store.shards))
