"""The `mcp` command: the memory as tools for a model, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.output import Json, fail


def mcp(
    context: typer.Context,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="TYPE:ID", help="Show this scope only; may be repeated.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that writes; note no uses.")] = False,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Count what queries return as used, from the next run on.")
    ] = True,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Offer the memory as tools to a model (MCP), over standard input and output, until the input ends."""
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
        fail(ImportError(f"{error}; the tools need more packages: pip install 'memstate[mcp]'"), 1, as_json)
        raise typer.Exit(1) from None
    stdio.run(store, Options(record=record and not read_only), scopes, read_only)
