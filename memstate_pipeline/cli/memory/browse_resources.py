"""The `memory browse-resources` command: the resources of a workspace as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import AsOf, Scopes, moment, parsed_scopes
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import missing_lines, open_sound_readers
from memstate_pipeline.cli.shared.terminal import cut, width


def browse_resources(
    context: typer.Context,
    uri: Annotated[str | None, typer.Option(metavar="URI", help="This resource, with its content.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="URI", help="The children of this resource.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All resources, not only the roots.")] = False,
    scope: Scopes = None,
    as_of: AsOf = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of resources.")] = 100,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List resources: the roots, the children of one, or one with its content."""
    from contextlib import ExitStack

    from memstate_core.retrieve.views.listing import Listing
    from memstate_core.retrieve.views.resources import ResourceFilter, resources_page

    if (uri is not None) + (parent is not None) + every > 1:
        raise typer.BadParameter("found more than one of --uri, --parent and --all, expected one of them")
    roots = uri is None and parent is None and not every
    wanted = ResourceFilter(uri, parent, roots, content=uri is not None, as_of=moment(as_of))
    scopes = parsed_scopes(scope)
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(context.obj.store, stack)
        found, last = resources_page(Listing(readers, scopes, limit, damaged), wanted, None)
        document = {"resources": found, "more": last is not None}
        document |= {"snapshot": ",".join(reader.name for reader in readers)}
    document |= damaged.note(scopes)
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from missing_lines(document)
    yield f"resources (snapshot {document['snapshot']})"
    for each in document["resources"]:
        below = f", {each['children']} below it" if each["children"] else ""
        size = f"{each['kind']}, {each['characters']:,} characters{below}, {each['scope']}"
        yield "  " + cut(f"{each['uri']} · {each['title']} ({size})", width() - 2)
        yield from (f"    {line}" for line in (each["content"] or "").splitlines())
    yield from ["  none"] * (not document["resources"])
    yield from ["  more: --limit N, or narrow with --parent or --scope"] * document["more"]
