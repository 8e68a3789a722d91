"""The `keys` commands: API keys of `memstate serve`, with scopes, roles and rates."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstate_pipeline.cli.shared.options import moment, parsed_scopes
from memstate_pipeline.cli.shared.output import Json, note, show

if TYPE_CHECKING:
    from memstate_core.run.store import Store
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

    A running server accepts it within a second. Its hash is published for replicas where the store publishes.
    """
    from memstate_core.serve.auth import key_file

    if bool(scope) == all_scopes:
        raise typer.BadParameter("expected either --scope TYPE:ID, once or more, or --all-scopes")
    store = context.obj.store
    made = key_file.make(
        name,
        scopes=None if all_scopes else list(parsed_scopes(scope) or ()),
        role=role,
        entropy=secrets.token_bytes(key_file.ID_BYTES + key_file.SECRET_BYTES),
        now=datetime.now(UTC),
        rate=rate,
        expires_at=moment(expires),
    )
    key_file.add(store.home.keys, made.key)
    published = _published(store)
    note("Save the key now: only its hash is stored.")
    show(_document(made.key) | {"key": made.token, "published": published}, as_json, lambda: [made.token])
    _require_published(published)


@app.command("list")
def list_(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """List the keys, without their secrets."""
    from memstate_core.serve.auth import key_file

    found = key_file.read(context.obj.store.home.keys) or []
    show({"keys": [_document(key) for key in found]}, as_json, lambda: [_line(key) for key in found] or ["no keys"])


@app.command()
def revoke(context: typer.Context, name: Name, as_json: Annotated[bool, Json] = False) -> None:
    """Revoke a key.

    A running server rejects it within a second. Replicas reject it when they have asked for the keys again.
    """
    from memstate_core.serve.auth import key_file

    store = context.obj.existing_store
    home, gone = store.home, key_file.revoke(store.home.keys, name)
    published = _published(store)
    if not key_file.read(home.keys):
        note(f"No key is left. The server still requires one until {home.keys} is removed and the server restarted.")
    show({"revoked": _document(gone), "published": published}, as_json, lambda: [f"revoked {name}"])
    _require_published(published)


def _published(store: Store) -> dict[str, str | None] | None:
    """Publishes the keys where the store published last; the URL and what failed, None if it publishes nowhere."""
    from memstate_core.model.errors import MemstateError
    from memstate_core.night.publication.note import last_publication, publication_url

    where, last = publication_url(store.home, store.settings), last_publication(store.home)
    if not where or last is None or last.where != where:
        return None
    from memstate_core.night.publication.keys import publish_keys
    from memstate_core.night.publication.upload import require_own

    try:
        require_own(store, where)
        publish_keys(store, where)
    except (MemstateError, OSError) as error:
        return {"url": where, "problem": str(error)}
    return {"url": where, "problem": None}


def _require_published(published: dict[str, str | None] | None) -> None:
    """Ends with an exit code of 1 if replicas do not know of the change."""
    if published is not None and published["problem"] is not None:
        note(f"memstate: the change is made here, but not published for replicas: {published['problem']}")
        raise typer.Exit(1)


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
