"""The command `memstate context`: what the published snapshot says to a question, for an agent's prompt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.read import AsOf, scopes_given, stages_given
from memstate_pipeline.cli.readers import open_readers
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def context(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The question.")],
    budget: Annotated[int, typer.Option(min=0, help="Tokens that the text may have.")],
    scope: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:ID", help="Scopes to ask; every scope without it.")
    ] = None,
    stages: Annotated[str, typer.Option(help="Comma-separated stages.")] = "semantic,structural,temporal",
    as_of: AsOf = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Print a bounded, cited context pack for a prompt."""
    from contextlib import ExitStack

    from memstate_core.embed.counting import TokenCounter
    from memstate_core.retrieve.context import EVIDENCE, TOPICS, context_pack
    from memstate_core.retrieve.query import Question, answer

    store: Store = context.obj.store
    past = moment(as_of)
    scopes, chosen = scopes_given(scope), stages_given(stages)
    question = Question(text, scopes, TOPICS, EVIDENCE, chosen, as_of=past, asked_at=datetime.now(UTC))
    with ExitStack() as stack:
        found = answer(open_readers(store, stack), store.encoder, store.home.cache, question)
    counter = TokenCounter(store.encoder.model)
    pack = context_pack(found, budget, counter, counted_by=counter.name, as_of=past)
    show(pack, as_json, lambda: _told(pack))


def _told(pack: dict[str, Any]) -> list[str]:
    """The text, then what its numbers stand for and what was left out."""
    left = ", ".join(f"{count} {kind}" for kind, count in pack["left_out"].items() if count)
    size = f"{pack['tokens']} of {pack['budget']} tokens as {pack['counted_by']} counts, snapshot {pack['snapshot']}"
    sources = [f"[{each['n']}] {each['kind']} {_source(each)}" for each in pack["citations"]]
    return [pack["text"] or "nothing fits", "", *sources, f"{size}; left out: {left or 'nothing'}"]


def _source(citation: dict[str, Any]) -> str:
    if "observation_id" in citation:
        return str(citation["observation_id"])
    return f"{citation['topic_id']} {citation['field']}" if "field" in citation else str(citation["topic_id"])
