"""The tools of the memory for models. Thin: what they do is in `memstate_core.serve.service`.

What they and their arguments are for is told to the model in the words of `memstate_core.serve.mcp.descriptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from memstate_core.model import answers
from memstate_core.model.answers.base import Sometimes
from memstate_core.model.scope import parse_scope
from memstate_core.model.text import iso
from memstate_core.serve.access.principal import Principal
from memstate_core.serve.http.request_bodies import ContextBody, QueryBody
from memstate_core.serve.mcp import descriptions as words
from memstate_core.serve.problems import Problem
from memstate_core.serve.reading import Document
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service

Who = Callable[[Context[Any, Any]], Principal]


class QueryResult(answers.QueryAnswer, frozen=True):
    """The answer to a question; with a budget both lists are empty and `context` has the text and its citations."""

    context: Sometimes[answers.ContextAnswer] = None


QUERY_SCHEMA, TOPIC_SCHEMA, INGEST_SCHEMA = map(
    response_model, (QueryResult, answers.TopicRecord, answers.IngestAnswer)
)


class Tools:
    """The tools, as functions that a server offers.

    Args:
        service: what they ask.
        who: tells who calls; over HTTP every request shows a key of its own.
    """

    def __init__(self, service: Service, who: Who) -> None:
        self._service, self._who = service, who

    def memory_query(
        self,
        ctx: Context[Any, Any],
        query: words.Question,
        scope: words.ScopesGiven = None,
        top_k: words.TopK = 5,
        evidence_k: words.EvidenceK = 8,
        as_of: words.AsOf = None,
        pending: words.WithPending = False,
        budget: words.Budget = None,
    ) -> Annotated[CallToolResult, QUERY_SCHEMA]:
        """See `mcp_words.QUERY`."""
        said: Document = {"q": query, "scope": scope, "as_of": None if as_of is None else iso(as_of)}
        if budget is not None:
            wanted = ContextBody.model_validate(said | {"budget": budget})
            return _packed(self._service.context(self._who(ctx), wanted.question(), budget))
        body = QueryBody.model_validate(said | {"top_k": top_k, "evidence_k": evidence_k, "pending": pending})
        return _result(self._service.query(self._who(ctx), body.question(), pending=body.pending))

    def memory_topic(
        self, ctx: Context[Any, Any], topic_id: words.TopicId, as_of: words.AsOf = None
    ) -> Annotated[CallToolResult, TOPIC_SCHEMA]:
        """See `mcp_words.TOPIC`."""
        return _result(self._service.topic(self._who(ctx), topic_id, as_of=as_of))

    def memory_history(
        self, ctx: Context[Any, Any], topic_id: words.TopicId, expand: words.Expand = False, as_of: words.AsOf = None
    ) -> Annotated[CallToolResult, TOPIC_SCHEMA]:
        """See `mcp_words.HISTORY`."""
        return _result(self._service.topic(self._who(ctx), topic_id, history=True, expand=expand, as_of=as_of))

    def memory_ingest(
        self,
        ctx: Context[Any, Any],
        text: words.Text = "",
        scope: words.ScopeGiven = "",
        title: words.Title = "",
        summary: words.Summary = "",
        topic_key: words.TopicKey = "",
        topic_id: words.TopicRef = "",
        topic_kind: words.TopicKind = "",
        fields: words.FieldsGiven = None,
        edges: words.EdgesGiven = None,
        kind: words.KindGiven = None,
        placement: words.PlacementGiven = None,
        actor: words.Actor = "",
        session_id: words.SessionId = "",
        observed_at: words.ObservedAt = None,
        observation_id: words.ObservationId = "",
    ) -> Annotated[CallToolResult, INGEST_SCHEMA]:
        """See `mcp_words.INGEST`."""
        who = self._who(ctx)
        said = {
            "text": text, "title": title, "summary": summary, "topic_key": topic_key, "topic_id": topic_id,
            "topic_kind": topic_kind, "kind": kind, "placement": placement, "actor": actor, "session_id": session_id,
            "observation_id": observation_id, "scope": _scope(scope, who),
            "observed_at": None if observed_at is None else iso(observed_at),
            "fields": _dumped(fields), "edges": _dumped(edges),
        }  # fmt: skip
        row = {name: value for name, value in said.items() if value not in (None, "", [])} | {"provenance": "mcp"}
        return _result(self._service.ingest(who, [msgspec.json.encode(row)], alone=True))


def _result(document: Document) -> CallToolResult:
    """A document for programs, and the same as text for models whose client shows them nothing else."""
    text = msgspec.json.encode(document, enc_hook=str)
    plain: Document = msgspec.json.decode(text)
    return CallToolResult(content=[TextContent(type="text", text=text.decode())], structured_content=plain)


def _packed(pack: Document) -> CallToolResult:
    """A context pack; its text is what a model reads."""
    whole = {"query": pack["query"], "snapshot": pack["snapshot"], "candidates": [], "evidence": []}
    plain: Document = msgspec.json.decode(msgspec.json.encode(pack, enc_hook=str))
    told = whole | {"summary_text": pack["text"], "context": plain}
    return CallToolResult(content=[TextContent(type="text", text=pack["text"])], structured_content=told)


def _scope(given: str, who: Principal) -> dict[str, str] | None:
    """The scope of an observation; that of the caller where there is but one.

    Raises:
        Problem: what is given is no scope.
    """
    mine = who.scopes or ()
    text = given or (next(iter(mine)) if len(mine) == 1 else "")
    if not text:
        return None
    try:
        kind, _, name = parse_scope(text).partition(":")
    except ValueError as error:
        raise Problem(422, "invalid-request", f"scope: {error}") from None
    return {"type": kind, "id": name}


def _dumped(parts: Sequence[BaseModel] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [part.model_dump(mode="json", exclude_unset=True) for part in parts]
