"""The `export` command: every topic as JSON Lines or Parquet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from memstate_pipeline.cli.shared.output import Json, show, show_json
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.readers import open_readers


def export(
    context: typer.Context,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="jsonl or parquet.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write. Default: stdout.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Export every topic with its history and evidence.

    Archived topics and topics merged away are included.
    """
    from contextlib import ExitStack

    from memstate_core.retrieve.views.export import export_jsonl, export_parquet, export_records

    if format_ not in ("jsonl", "parquet"):
        raise typer.BadParameter(f"unknown format {format_!r}: expected jsonl or parquet")
    if format_ == "parquet" and output is None:
        raise typer.BadParameter("--format parquet needs --output FILE")
    with ExitStack() as stack:
        if output is not None:  # what goes to a terminal shows by itself how far it is
            stack.enter_context(live_progress(doing="export"))
        readers = open_readers(context.obj.store, stack)
        if output is None and as_json:
            show_json({"topics": list(export_records(readers))})
        elif output is None:
            sys.stdout.buffer.writelines(export_jsonl(readers))
            sys.stdout.flush()
        elif format_ == "parquet":
            export_parquet(readers, output)
        else:
            stack.enter_context(output.open("wb")).writelines(export_jsonl(readers))
    if output is not None:
        show({"output": str(output), "format": format_}, as_json, lambda: [f"wrote {output}"])
