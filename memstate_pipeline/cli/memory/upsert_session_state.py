"""The `memory upsert-session-state` command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memstate_pipeline.cli.memory.write import ObservedAt, ScopeOf, write
from memstate_pipeline.cli.shared.output import Json


def upsert_session_state(
    context: typer.Context,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the session.")],
    status: Annotated[
        str | None, typer.Option(metavar="WORD", help="active, blocked or complete. Default: as it was.")
    ] = None,
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="What it works on. Default: as it was.")] = None,
    summary: Annotated[str | None, typer.Option(metavar="TEXT", help="What happened. Default: as it was.")] = None,
    working_set: Annotated[
        list[str] | None,
        typer.Option("--working-set", metavar="ITEM", help="A file or ticket that it works with; repeatable."),
    ] = None,
    scope: ScopeOf = "global",
    at: ObservedAt = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """State what a session is about and how far it is."""
    form: dict[str, Any] = {"type": "session_state", "session_id": session, "status": status, "current_goal": goal}
    form |= {"summary": summary, "working_set": working_set or None}
    write(context, {"memory": form}, scope, at, as_json)
