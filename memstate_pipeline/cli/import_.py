"""The `import` command: dumps into the ledger."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstate_pipeline.cli.shared.options import Now, default_scope, moment
from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.ingest.report import ImportReport
    from memstate_core.run.store import Store


def import_(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Dumps, or folders of dumps.")],
    scope: Annotated[str | None, typer.Option(metavar="TYPE:ID", help="Scope of records that name none.")] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Format of all dumps. Default: detected from each file's content."),
    ] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Import dumps into the ledger.

    Reads observations (JSON Lines, JSON, Parquet) and chat exports. Formats: observations, chatgpt, claude,
    claude-code, codex, slack, sharegpt, openai, whatsapp, memory-sqlite.
    """
    from memstate_core.ingest import formats
    from memstate_core.ingest.importer import import_paths
    from memstate_core.ingest.unread_folders import import_warnings
    from memstate_core.state.process.memory import memory_budget
    from memstate_pipeline.writers import writing

    try:
        if format is not None:
            formats.reader(format)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    scope_of_rows = default_scope(scope)
    store: Store = context.obj.store
    with writing(store, "import"), live_progress(), memory_budget(store.settings.store.memory_mib):
        report = import_paths(
            store.ledger,
            store.settings,
            paths,
            now=moment(now) or datetime.now(UTC),
            run_id=f"import-{uuid.uuid4()}",
            default_scope=scope_of_rows,
            format=format,
        )
    document = {**report.to_json(), "warnings": import_warnings(paths)}
    for unreadable in report.errors:
        note(f"memstate: {unreadable}")
    show(document, as_json, lambda: [*_lines(report), *(f"warning: {each}" for each in document["warnings"])])
    if report.errors:
        raise typer.Exit(1)


def _lines(report: ImportReport) -> Iterator[str]:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.reasons.items())
    files = f"{len(report.files)} file{'s' * (len(report.files) != 1)}"
    counts = f"{report.accepted:,} accepted, {report.duplicate:,} duplicate, {report.quarantined:,} quarantined"
    yield f"read {report.read:,} from {files}: {counts}" + f" ({reasons})" * bool(reasons)
    yield from (f"{Path(file.path).name}: {line}" for file in report.files for line in file.notes)
