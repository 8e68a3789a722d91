"""Commands for backups: backup, restore-backup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.night.backup.folder import Backup

_Folder = Annotated[
    str,
    typer.Argument(
        metavar="DIR|URL",
        help="Folder of the backups, or a URL: file://, s3://, gs:// or az://. Credentials come from the environment.",
    ),
]


def backup(
    context: typer.Context,
    folder: _Folder,
    listed: Annotated[bool, typer.Option("--list", help="List the backups of the folder instead.")] = False,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Then remove all but the N newest backups of this store.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Back the store up into a folder or object storage.

    Runs and servers go on meanwhile. Copies only what is not there yet. `memstate verify --backup DIR` checks the
    result.
    """
    from datetime import UTC, datetime

    from memstate_core.night.backup.back_up import back_up
    from memstate_pipeline.writers import refresh

    if listed:
        _list(folder, as_json)
        return
    with live_progress(doing="backup"):
        refresh(context.obj.store, "backup")
        made, copying, removed = back_up(context.obj.store, folder, datetime.now(UTC), keep)
    for line in made.left_out:
        note(f"left out: {line}")
    reused = {"files": len(made.files) - len(copying.sent), "bytes": made.size - copying.sent_bytes}
    copied = {"files": len(copying.sent), "bytes": copying.sent_bytes}
    document = {**_described(made), "copied": copied, "reused": reused, "removed": removed, "folder": folder}
    show(document, as_json, lambda: _lines(document))


def restore_backup(
    context: typer.Context,
    folder: _Folder,
    number: Annotated[
        int | None, typer.Option("--backup", metavar="N", help="Which backup. Default: the newest one.")
    ] = None,
    erasures: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|URL",
            help="A home, or a folder or URL of backups, that knows of later erasures, which are made again.",
        ),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Restore a backup into a new home, named by --home.

    The home must be empty or not exist. Every file is checked against its digest first. What the store erased after
    the backup is erased again, as far as its old home, a later backup of the folder, or --erasures knows of it.
    """
    from memstate_core.night.backup.restore import restore_backup as restore
    from memstate_core.run.home_path import home_path, is_url, named_home

    if is_url(named := named_home(context.obj.home)):
        raise typer.BadParameter(f"--home {named}: expected a folder. Set store.url in it when the backup is restored")
    home = home_path(context.obj.home)
    if erasures is not None and "://" not in erasures and not Path(erasures).is_dir():
        raise typer.BadParameter(f"--erasures {erasures}: expected the folder of a home or of backups")
    with live_progress(doing="restore-backup"):
        restored, again = restore(folder, home, number, erasures)
    document = {**_described(restored), "folder": folder, "restored_to": str(home), "erased_again": again}
    show(document, as_json, lambda: _restored_lines(document))


def _restored_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"restored {_line(document)}"
    numbers = ", ".join(map(str, document["erased_again"]))
    if numbers:
        yield f"erased again, since it was erased after the backup: certificates {numbers} in erasures/"
    yield f"into {document['restored_to']}; `memstate verify` checks it"


def _list(folder: str, as_json: bool) -> None:
    from memstate_core.night.backup.folder import BackupFolder

    found = BackupFolder(folder)
    newest = found.read()
    older = [found.read(number) for number in found.numbers() if number != newest.number]
    document = [_described(each) for each in [*older, newest]]
    show({"backups": document}, as_json, lambda: map(_line, document))


def _described(found: Backup) -> dict[str, Any]:
    from memstate_core.model.text import iso

    return {
        "backup": found.number,
        "at": iso(found.at),
        "home": found.home,
        "snapshot": ",".join(found.snapshots) or None,
        "state_hash": found.state_hash,
        "files": len(found.files),
        "bytes": found.size,
        "left_out": found.left_out,
    }


def _line(document: Mapping[str, Any]) -> str:
    served = document["snapshot"] or "no snapshot yet"
    amount = _amount(document)
    return f"backup {document['backup']}  {document['at'][:19]}Z  {served}  {amount}  of {document['home']}"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield _line(document)
    yield f"copied {_amount(document['copied'])}; there already was the content of {_amount(document['reused'])}"
    if document["removed"]:
        yield f"removed backups: {', '.join(map(str, document['removed']))}"


def _amount(document: Mapping[str, int]) -> str:
    return f"{document['files']:,} files, {document['bytes'] / (1 << 20):,.1f} MiB"
