"""The `facts` command: facts as subject, predicate and object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import AsOf, Scopes, moment, parsed_scopes
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import missing_lines, open_sound_readers
from memstate_pipeline.cli.shared.terminal import cut, width


def facts(
    context: typer.Context,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="TOPIC", help="Of this topic: its id, an alias, its key or its title."),
    ] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", metavar="NAME", help="Of this field, or this kind of edge.")
    ] = None,
    scope: Scopes = None,
    as_of: AsOf = None,
    history: Annotated[
        bool, typer.Option("--history", help="Also facts that were superseded, that ended or that are detached.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of facts.")] = 100,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List facts: what fields and edges say.

    Each value of a field is a fact about its topic, and so is each edge that names a relation.
    """
    from contextlib import ExitStack

    from memstate_core.retrieve.views.fact_pages import FactFilter, facts_page
    from memstate_core.retrieve.views.listing import Listing

    wanted, scopes = FactFilter(subject, predicate, moment(as_of), history), parsed_scopes(scope)
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(context.obj.store, stack)
        found, last = facts_page(Listing(readers, scopes, limit, damaged), wanted, None)
        document = {"facts": found, "more": last is not None, "snapshot": ",".join(reader.name for reader in readers)}
    document |= damaged.note(scopes)
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from missing_lines(document)
    yield f"facts (snapshot {document['snapshot']})"
    for fact in document["facts"]:
        yield "  " + cut(f"{fact['subject']} · {fact['predicate']} · {_value(fact['object'])}", width() - 2)
        yield "    " + cut(_details(fact), width() - 4)
    yield from ["  none"] * (not document["facts"])
    yield from ["  more: --limit N, or narrow with --subject, --predicate or --scope"] * document["more"]


def _details(fact: Mapping[str, Any]) -> str:
    until = f" until {fact['valid_until'][:10]}" if fact["valid_until"] else ""
    since = f"since {fact['valid_from'][:10]}" if fact["valid_from"] else "undated"
    confidence = "" if fact["confidence"] is None else f", confidence {fact['confidence']:.2f}"
    rivals = ", contradicted" * fact["contradicted"]
    return f"{since}{until}{confidence}{rivals}, from {', '.join(fact['source_event_ids']) or 'no evidence served'}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
