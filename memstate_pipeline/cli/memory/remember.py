"""The `memory remember` command: a sentence as evidence, or a core block."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.memory.write import ObservedAt, ScopeOf, write
from memstate_pipeline.cli.shared.output import Json


def remember(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to remember, in complete sentences.")],
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="Make it the core block of this name, in every context pack.")
    ] = None,
    authority: Annotated[
        int | None, typer.Option(metavar="N", help="With --label: blocks with more of it come first.")
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option("--read-only/--writable", help="With --label: whether agents should leave it."),
    ] = None,
    scope: ScopeOf = "global",
    at: ObservedAt = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Remember a sentence, or a core block."""
    if label is None and (authority, read_only) != (None, None):
        raise typer.BadParameter("--authority and --read-only belong to a core block, expected --label beside them")
    block = {"type": "core_block", "label": label, "content": text, "authority": authority, "read_only": read_only}
    given = {"text": text, "kind": "explicit_memory"} if label is None else {"memory": block}
    write(context, given, scope, at, as_json)
