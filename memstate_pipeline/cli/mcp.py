"""The `mcp` command: the memory as MCP tools over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.shared.errors import missing_extra, report
from memstate_pipeline.cli.shared.output import Json


def mcp(
    context: typer.Context,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="TYPE:ID", help="Show only this scope; may be repeated.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tools that write, and record no accesses.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Record what queries return as accessed.")
    ] = True,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Serve the memory as MCP tools over stdin and stdout.

    Ends when the input ends.
    """
    from memstate_core.model.scope import parse_scope
    from memstate_core.serve.options import Options

    store = context.obj.store
    try:
        scopes = frozenset(map(parse_scope, scope)) if scope else None
    except ValueError as error:
        raise typer.BadParameter(f"--scope {error}") from None
    try:
        from memstate_core.serve.mcp import stdio
    except ImportError as error:
        report(missing_extra(error, "mcp"), as_json)
        raise typer.Exit(1) from None
    stdio.run(store, Options(record=record and not read_only), scopes, read_only)
