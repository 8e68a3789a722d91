"""The `memory probe-relations` command: how an item stands to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.memory.write import ScopeOf
from memstate_pipeline.cli.shared.options import AsOf, moment
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import missing_lines, open_sound_readers
from memstate_pipeline.cli.shared.terminal import cut, width


def probe_relations(
    context: typer.Context,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Such as key:acme-renewal or observation:crm/42.")],
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Kind of the topic, where the item is a title.")
    ] = None,
    scope: ScopeOf = "global",
    as_of: AsOf = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List the relations of a memory item, and which of them are in force."""
    from contextlib import ExitStack

    from memstate_core.model.forms.item import SPELLING, item_of
    from memstate_core.model.scope import parse_scope
    from memstate_core.retrieve.views.relations import relations_of

    named = item_of(item, kind)
    if named is None:
        raise typer.BadParameter(f"{item!r} is no item, expected {SPELLING}")
    try:
        where = parse_scope(scope)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(context.obj.store, stack)
        document = relations_of(readers, named, where, moment(as_of) or datetime.now(UTC))
    document = {"item": item} | document | damaged.note([where])
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from missing_lines(document)
    yield f"relations of {document['title']} ({document['topic_id']}), snapshot {document['snapshot']}"
    for each in document["relations"]:
        ends = document["title"], each["title"]
        first, second = ends if each["direction"] == "out" else reversed(ends)
        until = f" until {each['valid_until'][:10]}" if each["valid_until"] else ""
        since = f"since {each['valid_from'][:10]}{until}"
        force = "" if each["active"] else ", not in force"
        yield "  " + cut(f"{first} {each['relation']} {second}, {since}{force}", width() - 2)
    yield from ["  none"] * (not document["relations"])
