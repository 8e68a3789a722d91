"""The `context` command: a cited context pack for a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import (
    ALL_STAGES,
    AsOf,
    PackPolicy,
    PackTokenizer,
    QuestionText,
    Scopes,
    Stages,
    moment,
    parsed_counter,
    parsed_policy,
    parsed_scopes,
    parsed_stages,
)
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import missing_lines, open_sound_readers, served_encoder

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def context(
    context: typer.Context,
    text: QuestionText,
    budget: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum size of the text, in tokens.")],
    scope: Scopes = None,
    stages: Stages = ALL_STAGES,
    as_of: AsOf = None,
    policy: PackPolicy = "auto",
    tokenizer: PackTokenizer = "model",
    root: Annotated[str | None, typer.Option(metavar="PATH", help="Workspace that you ask from.")] = None,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="Branch that you ask from.")] = None,
    commit: Annotated[str | None, typer.Option(metavar="HASH", help="Commit that you ask from.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Print a cited context pack for a prompt."""
    from contextlib import ExitStack

    from memstate_core.retrieve.packs.context import EVIDENCE, TOPICS, context_pack
    from memstate_core.retrieve.packs.grounds import with_warnings
    from memstate_core.retrieve.packs.recall_warnings import Workspace
    from memstate_core.retrieve.query import Question, answer

    store: Store = context.obj.store
    past = moment(as_of)
    scopes, chosen = parsed_scopes(scope), parsed_stages(stages)
    route = parsed_policy(policy)
    question = Question(text, scopes, TOPICS, EVIDENCE, chosen, as_of=past, policy=route, asked_at=datetime.now(UTC))
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(store, stack)
        encoder = served_encoder(store, readers)
        found = answer(readers, encoder, store.home.cache, question, damaged=damaged)
        counter = parsed_counter(tokenizer, encoder)
        pack = context_pack(found, budget, counter, counted_by=counter.name, policy=route, as_of=past)
        pack = with_warnings(pack, readers, scopes, Workspace(root, branch, commit), past)
    show(pack, as_json, lambda: _lines(pack))


def _lines(pack: Mapping[str, Any]) -> Iterator[str]:
    """The text, its sources by number, its size, and what was left out."""
    left = ", ".join(f"{count} {kind}" for kind, count in pack["left_out"].items() if count)
    yield from pack["text"].splitlines() or ["nothing fits"]
    yield ""
    yield from (f"[{each['n']}] {each['kind']} {_source(each)}" for each in pack["citations"])
    size = f"{pack['tokens']} of {pack['budget']} tokens ({pack['counted_by']}), snapshot {pack['snapshot']}"
    yield f"{size}; left out: {left or 'nothing'}"
    yield from (f"{each['kind']}: {each['target']} {each['message']}" for each in pack["recall_warnings"])
    for found in pack["verification_warnings"]:
        yield f"verification {found['status']}: {found['target']} {found['check']}: {found['message']}"
    for what, part in (("core block", "core_left_out"), ("session", "session_left_out")):
        for each in pack[part]:
            yield f"{what} {each['title']} of {each['scope']} did not fit: it needs {each['tokens']} tokens"
    yield from missing_lines(pack)


def _source(citation: Mapping[str, Any]) -> str:
    if "observation_id" in citation:
        of = f" of {citation['scope']}" if "scope" in citation else ""
        return f"{citation['observation_id']}{of}"
    return f"{citation['topic_id']} {citation['field']}" if "field" in citation else str(citation["topic_id"])
