"""The `keys` commands: who may ask the server, for which scopes, and what they may do."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstate_pipeline.cli.output import Json, note, show
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from memstate_core.serve.auth.key_file import Key

Name = Annotated[str, typer.Argument(help="What the key is called, in logs too.")]
app = typer.Typer(help="Make, list and revoke the keys that callers of `memstate serve` show.", no_args_is_help=True)


@app.command()
def add(
    context: typer.Context,
    name: Name,
    scope: Annotated[list[str] | None, typer.Option(metavar="TYPE:ID", help="A scope that it is for.")] = None,
    all_scopes: Annotated[bool, typer.Option("--all-scopes", help="It is for every scope.")] = False,
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="read asks; write also sends observations and feedback; admin also collects metrics."),
    ] = "read",
    rate: Annotated[
        float | None, typer.Option(min=0.01, help="Requests a second that it may make; the server's own limit without.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends, ISO 8601; never without it.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Make a key and print it, this once. A running server takes it within a second."""
    from memstate_core.serve.auth import key_file

    if bool(scope) == all_scopes:
        raise typer.BadParameter("expected either --scope TYPE:ID, once or more often, or --all-scopes")
    home = context.obj.store.home
    made = key_file.make(
        name,
        scopes=None if all_scopes else _scopes(scope or []),
        role=role,
        entropy=secrets.token_bytes(key_file.ID_BYTES + key_file.SECRET_BYTES),
        now=datetime.now(UTC),
        rate=rate,
        expires_at=moment(expires),
    )
    key_file.add(home.keys, made.key)
    note("Keep it now: only its hash is stored.")
    show(_told(made.key) | {"key": made.token}, as_json, lambda: [made.token])


@app.command("list")
def list_(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """List the keys; what opens the door is not among what is stored."""
    from memstate_core.serve.auth import key_file

    found = key_file.read(context.obj.store.home.keys) or []
    show({"keys": [_told(key) for key in found]}, as_json, lambda: [_line(key) for key in found] or ["no keys"])


@app.command()
def revoke(context: typer.Context, name: Name, as_json: Annotated[bool, Json] = False) -> None:
    """Let a key open nothing any more. A running server hears of it within a second."""
    from memstate_core.serve.auth import key_file

    home = context.obj.store.home
    gone = key_file.revoke(home.keys, name)
    if not key_file.read(home.keys):
        note(f"No key is left. The server goes on to ask for one until {home.keys} is removed and it is started anew.")
    show({"revoked": _told(gone)}, as_json, lambda: [f"revoked {name}"])


def _scopes(given: list[str]) -> list[str]:
    from memstate_core.model.scope import parse_scope

    try:
        return [parse_scope(each) for each in given]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _told(key: Key) -> dict[str, Any]:
    """A key without its hash."""
    from memstate_core.model.text import iso

    return {
        "name": key.name,
        "id": key.id,
        "scopes": key.scopes,
        "role": key.role,
        "rate": key.rate,
        "created_at": iso(key.created_at),
        "expires_at": None if key.expires_at is None else iso(key.expires_at),
        "expired": key.has_expired(datetime.now(UTC)),
    }


def _line(key: Key) -> str:
    told = _told(key)
    scopes = "every scope" if key.scopes is None else ", ".join(key.scopes)
    ends = "" if key.expires_at is None else f", {'ended' if told['expired'] else 'ends'} {told['expires_at']}"
    return f"{key.name} (ms_{key.id}_…): {key.role}, {scopes}{ends}"
