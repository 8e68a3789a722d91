"""The `keys` commands: API keys of `memstate serve`, with scopes, roles and rates."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstate_pipeline.cli.options import moment, parsed_scopes
from memstate_pipeline.cli.output import Json, note, show

if TYPE_CHECKING:
    from memstate_core.serve.auth.key_file import Key

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key, also used in logs.")]
app = typer.Typer(help="Manage the API keys of `memstate serve`.", no_args_is_help=True)


@app.command()
def add(
    context: typer.Context,
    name: Name,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:ID", help="Scope that the key may access; may be repeated.")
    ] = None,
    all_scopes: Annotated[bool, typer.Option("--all-scopes", help="The key may access every scope.")] = False,
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="read: queries; write: also observations and feedback; admin: also metrics."),
    ] = "read",
    rate: Annotated[
        float | None, typer.Option(min=0.01, metavar="N", help="Requests per second. Default: the server's limit.")
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="Expiry, ISO 8601. Default: never.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Create a key and print it, once.

    A running server accepts it within a second.
    """
    from memstate_core.serve.auth import key_file

    if bool(scope) == all_scopes:
        raise typer.BadParameter("expected either --scope TYPE:ID, once or more, or --all-scopes")
    home = context.obj.store.home
    made = key_file.make(
        name,
        scopes=None if all_scopes else list(parsed_scopes(scope) or ()),
        role=role,
        entropy=secrets.token_bytes(key_file.ID_BYTES + key_file.SECRET_BYTES),
        now=datetime.now(UTC),
        rate=rate,
        expires_at=moment(expires),
    )
    key_file.add(home.keys, made.key)
    note("Save the key now: only its hash is stored.")
    show(_document(made.key) | {"key": made.token}, as_json, lambda: [made.token])


@app.command("list")
def list_(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """List the keys, without their secrets."""
    from memstate_core.serve.auth import key_file

    found = key_file.read(context.obj.store.home.keys) or []
    show({"keys": [_document(key) for key in found]}, as_json, lambda: [_line(key) for key in found] or ["no keys"])


@app.command()
def revoke(context: typer.Context, name: Name, as_json: Annotated[bool, Json] = False) -> None:
    """Revoke a key.

    A running server rejects it within a second.
    """
    from memstate_core.serve.auth import key_file

    home = context.obj.store.home
    gone = key_file.revoke(home.keys, name)
    if not key_file.read(home.keys):
        note(f"No key is left. The server still requires one until {home.keys} is removed and the server restarted.")
    show({"revoked": _document(gone)}, as_json, lambda: [f"revoked {name}"])


def _document(key: Key) -> dict[str, Any]:
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
    document = _document(key)
    scopes = "every scope" if key.scopes is None else ", ".join(key.scopes)
    ends = (
        ""
        if key.expires_at is None
        else f", {'expired' if document['expired'] else 'expires'} {document['expires_at']}"
    )
    return f"{key.name} (ms_{key.id}_…): {key.role}, {scopes}{ends}"
