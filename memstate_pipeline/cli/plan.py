"""The `plan` and `apply` commands: the nightly job in two steps, first the list of actions, then the actions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.maintain import step_progress, summary_lines
from memstate_pipeline.cli.shared.options import Accept, Now, Why, accepted_gates, moment
from memstate_pipeline.cli.shared.output import Json, as_uri, note, show
from memstate_pipeline.cli.shared.priority import lower_priority
from memstate_pipeline.cli.shared.terminal import one_line

if TYPE_CHECKING:
    from memstate_core.night.plan_file import Action, Plan
    from memstate_core.run.store import Store

SHOWN = 20
"""Maximum number of merges, and of archivals, that are printed; the file has all."""


def plan(
    context: typer.Context,
    now: Now = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", dir_okay=False, help="File to write. Default: memstate-plan-<hash>.json."
        ),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Write the actions of the next run to a file.

    The run works on a copy; the store does not change.
    """
    from memstate_core.night.clone import cloned
    from memstate_core.night.plan_file import write_plan
    from memstate_pipeline.planning import plan_on
    from memstate_pipeline.writers import refresh

    at = moment(now) or datetime.now(UTC)
    refresh(context.obj.store, "plan")
    note("Running the nightly job on a copy of the store …")
    with cloned(context.obj.store) as clone, step_progress(clone):
        made = plan_on(clone, at)
    path = output or Path(f"memstate-plan-{made.name}.json")
    write_plan(made, path)
    command = ["memstate", *(["--home", context.obj.home] if context.obj.home else []), "apply", str(path)]
    show(
        _document(made, path),
        as_json,
        lambda: [*_lines(made), f"plan: {as_uri(path)}", f"apply it with: {shlex.join(command)}"],
    )


def apply(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="File written by `memstate plan`.")],
    accept: Accept = None,
    why: Why = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Run the nightly job exactly as planned.

    Refuses if the store has changed since, if the run decides otherwise, or if a gate fails that is not accepted.
    """
    from memstate_pipeline.planning import apply_plan

    store: Store = context.obj.store
    given = accepted_gates(accept, why)
    lower_priority(store)
    with step_progress(store):
        done = apply_plan(store, plan, given)
    show(done.summary, as_json, lambda: summary_lines(done.summary, done.pages))


def _document(plan: Plan, path: Path) -> dict[str, Any]:
    """The JSON of `memstate plan`: its path, and the plan without actions, titles and settings."""
    from msgspec import to_builtins

    left_out = ("actions", "titles", "settings_values")
    return {"path": str(path), **{name: v for name, v in to_builtins(plan).items() if name not in left_out}}


def _lines(plan: Plan) -> Iterator[str]:
    from memstate_core.model.text import iso
    from memstate_core.state.fold.decisions import ARCHIVED, MERGED

    yield f"plan {plan.name} for {iso(plan.now)}: {len(plan.actions):,} actions on {_base(plan)}"
    yield from (f"  {count:>9,}  {kind.replace('_', ' ')}" for kind, count in plan.summary.items())
    yield from _listed("merges", [_merge(plan, action) for action in plan.actions if action.kind == MERGED])
    yield from _listed("archivals", [_archival(plan, action) for action in plan.actions if action.kind == ARCHIVED])
    for shard, result in plan.result.items():
        false = result.expected_false_merges
        yield f"state hash of {shard} afterwards: {result.state_hash}"
        if false is not None:
            yield f"expected false merges in {shard}: {false}"
        yield from (f"gate {name} fails in {shard}: {found}" for name, found in result.gates.items())


def _listed(name: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{name}: {len(lines):,}" + f", the first {SHOWN} of them:" * (len(lines) > SHOWN)
        yield from (f"  {line}" for line in lines[:SHOWN])


def _merge(plan: Plan, action: Action) -> str:
    probability = action.payload.get("probability")
    confidence = "" if probability is None else f", probability {probability:.4f}"
    dropped = _titled(plan, action.topic_id, action.payload.get("dropped_title"))
    return f"{dropped} into {_titled(plan, action.payload['survivor'])}{confidence}: {action.reason}"


def _archival(plan: Plan, action: Action) -> str:
    return f"{_titled(plan, action.topic_id)}: {action.reason}"


def _titled(plan: Plan, topic_id: str | None, given: str | None = None) -> str:
    title = given or plan.titles.get(topic_id or "")
    return f"{topic_id}" if title is None else f"“{one_line(title)}” ({topic_id})"


def _base(plan: Plan) -> str:
    return ", ".join(base.snapshot or f"an empty {shard}" for shard, base in plan.base.items())
