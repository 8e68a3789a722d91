"""The `memory add-relation` command: the relation is an observation, so its evidence is stored first."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.memory.write import ObservedAt, ScopeOf, write
from memstate_pipeline.cli.shared.output import Json


def add_relation(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="ITEM", help="Such as key:acme-renewal or observation:crm/42.")],
    relation: Annotated[
        str, typer.Argument(metavar="RELATION", help="contradicts, derives, extends, supersedes or supports.")
    ],
    target: Annotated[str, typer.Argument(metavar="ITEM", help="The item that it leads to.")],
    source_kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Kind of the topic, where the first item is a title.")
    ] = None,
    target_kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Kind of the topic, where the second item is a title.")
    ] = None,
    valid_from: Annotated[str | None, typer.Option(metavar="TIME", help="When it began. Default: --at.")] = None,
    valid_until: Annotated[str | None, typer.Option(metavar="TIME", help="When it ends. Default: never.")] = None,
    because_of: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Observation that it rests on; may be repeated.")
    ] = None,
    scope: ScopeOf = "global",
    at: ObservedAt = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Relate two memory items."""
    from memstate_core.model.forms.relation import dated

    for name, text in (("--valid-from", valid_from), ("--valid-until", valid_until)):
        if text is not None and dated(text) is None:
            typer.echo(f"{name} {text!r} is no ISO 8601 date and counts as none: the relation is in force", err=True)
    form = {
        "type": "relation", "source": source, "relation": relation, "target": target, "source_kind": source_kind,
        "target_kind": target_kind, "valid_from": valid_from, "valid_until": valid_until, "sources": because_of or None,
    }  # fmt: skip
    write(context, {"memory": form}, scope, at, as_json)
