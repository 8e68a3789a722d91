"""Commands that change the store: import, maintain, rebuild."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, as_uri, note, progress_bar, show
from memstate_pipeline.cli.priority import step_aside

if TYPE_CHECKING:
    from rich.progress import TaskID

    from memstate_core.run.store import Store

Now = Annotated[str | None, typer.Option(help="The logical time of the run, ISO 8601; the machine's clock without it.")]
STEPS = 11


def moment(text: str | None) -> datetime | None:
    """A time from the command line.

    Raises:
        typer.BadParameter: it is not ISO 8601.
    """
    from memstate_core.model.text import parse_moment

    try:
        return None if text is None else parse_moment(text)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is no time: expected ISO 8601, as 2026-03-01T00:00:00Z") from error


def import_(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Dumps, or folders of dumps.")],
    scope: Annotated[str | None, typer.Option(metavar="TYPE:ID", help="The scope of records that name none.")] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The format of all dumps; by default each file's content tells it."),
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Read dumps into the ledger: observations (JSON Lines, JSON, Parquet) and exports of chats.

    Formats: observations, chatgpt, claude, claude-code, codex, slack, sharegpt, openai, whatsapp.
    """
    from memstate_core.ingest import formats
    from memstate_core.ingest.importer import import_paths
    from memstate_core.model.scope import parse_scope

    try:
        default_scope = None if scope is None else parse_scope(scope)
        if format is not None:
            formats.reader(format)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    store: Store = context.obj.store
    with _file_progress() as progress:
        report = import_paths(
            store.ledger,
            store.settings,
            paths,
            now=moment(now) or datetime.now(UTC),
            run_id=f"import-{uuid.uuid4()}",
            default_scope=default_scope,
            format=format,
            progress=progress,
        )
    for unreadable in report.errors:
        note(f"memstate: {unreadable}")
    notes = [f"{Path(file.path).name}: {line}" for file in report.files for line in file.notes]
    reasons = ", ".join(f"{count} {reason}" for reason, count in report.to_json()["reasons"].items())
    told = f"read {report.read:,} from {len(report.files)} file{'s' * (len(report.files) != 1)}: "
    told += f"{report.accepted:,} accepted, {report.duplicate:,} duplicate, {report.quarantined:,} quarantined"
    show(report.to_json(), as_json, lambda: [told + f" ({reasons})" * bool(reasons), *notes])
    if report.errors:
        raise typer.Exit(1)


def maintain(context: typer.Context, now: Now = None, as_json: Annotated[bool, Json] = False) -> None:
    """Run the nightly job through Dagster in this process, and publish."""
    from memstate_pipeline import run

    store: Store = context.obj.store
    at = moment(now)
    step_aside(store)
    with step_progress(store):
        done = run.maintain(store, at)
    show(done.summary, as_json, lambda: told_lines(done.summary, done.pages))


def rebuild(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Fold the ledger again, from nothing, and publish the result if it is the same state."""
    from memstate_core.night.rebuild import rebuild as rebuild_shard
    from memstate_core.state.lock import exclusive
    from memstate_core.state.snapshots import combined_state_hash, current_snapshot

    store: Store = context.obj.store
    with exclusive(store.home.lock, f"process {os.getpid()} (memstate rebuild)"):
        hashes = {shard: rebuild_shard(store, shard, f"rebuild-{uuid.uuid4()}").state_hash for shard in store.shards}
    names = [snapshot.name for shard in store.shards if (snapshot := current_snapshot(store.home, shard))]
    state, served = combined_state_hash(hashes), ",".join(names)
    document = {"state_hash": state, "snapshot": served, "same_state": True}
    show(document, as_json, lambda: [f"rebuilt: state {state[:12]}… as before, served as {served}"])


def told_lines(summary: dict[str, Any], pages: tuple[Path, ...]) -> list[str]:
    """What `maintain` and `apply` say to people."""
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in summary["counts"].items() if count)
    passed = sum(check["passed"] for check in summary["checks"])
    return [
        f"published {summary['snapshot']}: {counts or 'nothing new'}",
        *_merge_lines(summary),
        f"{passed} of {len(summary['checks'])} checks passed, {sum(summary['seconds'].values()):.1f} s",
        *(f"report: {as_uri(page)}" for page in pages),
    ]


def _merge_lines(summary: dict[str, Any]) -> list[str]:
    """How sure the merges are: the expected number of false pairs, and the probabilities behind it."""
    if not summary["counts"]["merges"]:
        return []
    steps = [
        f"{row['merged']:,} from {row['probability_from']} on ({row['expected_false']} false)"
        for row in summary["calibration"]
        if row["merged"]
    ]
    return [f"merged pairs expected to be false: {summary['expected_false_merges']}; by probability {', '.join(steps)}"]


@contextmanager
def _file_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    with progress_bar() as bar:
        if bar is None:
            yield None
            return
        tasks: dict[str, TaskID] = {}

        def advance(path: str, done: int, total: int) -> None:
            if path not in tasks:
                tasks[path] = bar.add_task(Path(path).name, total=total)
            bar.update(tasks[path], completed=done)

        yield advance


@contextmanager
def step_progress(store: Store) -> Iterator[None]:
    """Shows how many steps have left their notes, which is how a run in progress is seen from outside."""
    with progress_bar() as bar:
        if bar is None:
            yield
            return
        task, ended = bar.add_task("maintain", total=STEPS * len(store.shards)), threading.Event()

        def watch() -> None:
            seen: set[tuple[str, str]] = set()
            while not ended.wait(0.2):
                for shard in store.shards:
                    seen |= {(shard, path.stem) for path in store.home.work(shard).glob("notes/*.json")}
                bar.update(task, completed=len(seen), description=f"maintain: {len(seen)} steps done")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
