"""The `memory upsert-resource` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memstate_pipeline.cli.memory.write import ObservedAt, ScopeOf, write
from memstate_pipeline.cli.shared.output import Json


def upsert_resource(
    context: typer.Context,
    uri: Annotated[str, typer.Argument(metavar="URI", help="Its address within the scope.")],
    title: Annotated[str, typer.Option(metavar="TEXT", help="Its title.")],
    kind: Annotated[
        str | None, typer.Option(metavar="WORD", help="doc, file, note, url or other. Default: as it was.")
    ] = None,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="Its whole text. Default: as it was.")] = None,
    content_file: Annotated[
        Path | None, typer.Option("--content-file", metavar="FILE", help="A UTF-8 file with its whole text.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="URI", help="The resource it belongs to; an empty text makes it a root.")
    ] = None,
    scope: ScopeOf = "global",
    at: ObservedAt = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Write a document, file, note or link of a workspace."""
    if content is not None and content_file is not None:
        raise typer.BadParameter("found --content and --content-file, expected one of them")
    if content_file is not None:
        try:
            content = content_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{content_file} cannot be read as UTF-8 text: {error}") from error
    form = {"type": "resource", "uri": uri, "title": title, "kind": kind, "content": content, "parent_uri": parent}
    write(context, {"memory": form}, scope, at, as_json)
