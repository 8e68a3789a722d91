"""The `memory search` command: what the memory knows about a question, as `memstate query` finds it."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.query import query
from memstate_pipeline.cli.shared.options import AsOf, Scopes, not_blank
from memstate_pipeline.cli.shared.output import Json


def search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question, or keywords.", callback=not_blank)],
    scope: Scopes = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of topics, and of evidence.")] = 10,
    as_of: AsOf = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Search for topics, resources and evidence; `memstate query` has more options."""
    query(context, text, scope, top_k=limit, evidence_k=limit, as_of=as_of, as_json=as_json)
