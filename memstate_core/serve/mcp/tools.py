"""The MCP tools. Their work is done by `memstate_core.serve.service`.

`memstate_core.serve.mcp.descriptions` has the descriptions of tools and arguments that models read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from memstate_core.embed.token_counters import MODEL
from memstate_core.model import answers
from memstate_core.model.answers.base import Sometimes
from memstate_core.model.scope import parse_scope
from memstate_core.model.text import iso
from memstate_core.retrieve.routing import AUTO
from memstate_core.retrieve.views.resources import ResourceFilter
from memstate_core.serve.auth.principal import Principal
from memstate_core.serve.http.request_bodies import ContextBody, QueryBody
from memstate_core.serve.mcp import descriptions as arg
from memstate_core.serve.mcp.forms import MemoryGiven
from memstate_core.serve.problems import Problem
from memstate_core.serve.reading import Document
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service

Who = Callable[[Context[Any, Any]], Principal]


class QueryResult(answers.QueryAnswer, frozen=True):
    """The answer to a question; with a budget both lists are empty and `context` has the text and its citations."""

    context: Sometimes[answers.ContextAnswer] = None


QUERY_SCHEMA, TOPIC_SCHEMA, INGEST_SCHEMA, RESOURCES_SCHEMA = map(
    response_model, (QueryResult, answers.TopicRecord, answers.IngestAnswer, answers.ResourcesPage)
)


class Tools:
    """The tools as methods that a server registers.

    Args:
        service: the service that they call.
        who: determines the caller; over HTTP each request carries its own key.
    """

    def __init__(self, service: Service, who: Who) -> None:
        self._service, self._who = service, who

    def memory_query(
        self,
        ctx: Context[Any, Any],
        query: arg.Question,
        scope: arg.ScopesGiven = None,
        top_k: arg.TopK = 5,
        evidence_k: arg.EvidenceK = 8,
        as_of: arg.AsOf = None,
        pending: arg.WithPending = False,
        evidence_kinds: arg.EvidenceKinds = None,
        tool: arg.ToolName = None,
        status: arg.ToolStatus = None,
        path: arg.ToolPath = None,
        budget: arg.Budget = None,
        policy: arg.PolicyGiven = AUTO,
        tokenizer: arg.TokenizerGiven = MODEL,
        workspace: arg.WorkspaceGiven = None,
    ) -> Annotated[CallToolResult, QUERY_SCHEMA]:
        """See `mcp_arg.QUERY`."""
        asked: Document = {"q": query, "scope": scope, "as_of": None if as_of is None else iso(as_of)}
        filters = {"evidence_kinds": evidence_kinds, "tool": tool, "status": status, "path": path}
        if budget is not None:
            _require_none_of(filters | {"pending": pending})
            place = None if workspace is None else workspace.model_dump()
            asked |= {"budget": budget, "policy": policy, "tokenizer": tokenizer, "workspace": place}
            wanted = ContextBody.model_validate(asked)
            own = wanted.question(), budget, None, wanted.place(), wanted.tokenizer
            return _packed(self._service.context(self._who(ctx), *own))
        body = QueryBody.model_validate(
            asked | filters | {"top_k": top_k, "evidence_k": evidence_k, "pending": pending}
        )
        return _result(self._service.query(self._who(ctx), body.question(), pending=body.pending))

    def memory_topic(
        self, ctx: Context[Any, Any], topic_id: arg.TopicId, as_of: arg.AsOf = None
    ) -> Annotated[CallToolResult, TOPIC_SCHEMA]:
        """See `mcp_arg.TOPIC`."""
        return _result(self._service.topic(self._who(ctx), topic_id, as_of=as_of))

    def memory_history(
        self, ctx: Context[Any, Any], topic_id: arg.TopicId, expand: arg.Expand = False, as_of: arg.AsOf = None
    ) -> Annotated[CallToolResult, TOPIC_SCHEMA]:
        """See `mcp_arg.HISTORY`."""
        return _result(self._service.topic(self._who(ctx), topic_id, history=True, expand=expand, as_of=as_of))

    def memory_resources(
        self,
        ctx: Context[Any, Any],
        uri: arg.ResourceUri = None,
        parent_uri: arg.ParentUri = None,
        scope: arg.ScopesGiven = None,
        as_of: arg.AsOf = None,
        limit: arg.ResourceLimit = 50,
    ) -> Annotated[CallToolResult, RESOURCES_SCHEMA]:
        """See `mcp_arg.RESOURCES`."""
        given = [scope] if isinstance(scope, str) else scope
        roots = uri is None and parent_uri is None
        wanted = ResourceFilter(uri, parent_uri, roots, content=uri is not None, as_of=as_of)
        scopes = None if given is None else list(map(_scope_name, given))
        return _result(self._service.resources(self._who(ctx), scopes, wanted, None, limit))

    def memory_ingest(
        self,
        ctx: Context[Any, Any],
        text: arg.Text = "",
        scope: arg.ScopeGiven = "",
        title: arg.Title = "",
        summary: arg.Summary = "",
        topic_key: arg.TopicKey = "",
        topic_id: arg.TopicRef = "",
        topic_kind: arg.TopicKind = "",
        fields: arg.FieldsGiven = None,
        details: arg.DetailsGiven = None,
        edges: arg.EdgesGiven = None,
        memory: MemoryGiven = None,
        kind: arg.KindGiven = None,
        placement: arg.PlacementGiven = None,
        actor: arg.Actor = "",
        session_id: arg.SessionId = "",
        observed_at: arg.ObservedAt = None,
        observation_id: arg.ObservationId = "",
    ) -> Annotated[CallToolResult, INGEST_SCHEMA]:
        """See `mcp_arg.INGEST`."""
        who = self._who(ctx)
        given = {
            "text": text, "title": title, "summary": summary, "topic_key": topic_key, "topic_id": topic_id,
            "topic_kind": topic_kind, "kind": kind, "placement": placement, "actor": actor, "session_id": session_id,
            "observation_id": observation_id, "scope": _scope(scope, who),
            "observed_at": None if observed_at is None else iso(observed_at),
            "fields": _dumped(fields), "edges": _dumped(edges),
            "details": None if details is None else details.model_dump(exclude_none=True),
            "memory": None if memory is None else memory.model_dump(mode="json", exclude_unset=True),
        }  # fmt: skip
        row = {name: value for name, value in given.items() if value not in (None, "", [])} | {"provenance": "mcp"}
        return _result(self._service.ingest(who, [msgspec.json.encode(row)], alone=True))


def _require_none_of(lists_only: Document) -> None:
    """Refuses what a text within a budget would leave out of account.

    Raises:
        Problem: one of these arguments was given.
    """
    if given := [name for name, value in lists_only.items() if value]:
        detail = f"{', '.join(given)}: found beside budget, expected only one; without budget, lists are returned"
        raise Problem(422, "invalid-request", detail)


def _result(document: Document) -> CallToolResult:
    """A document as structured content, and as text for clients that show models nothing else."""
    text = msgspec.json.encode(document, enc_hook=str)
    plain: Document = msgspec.json.decode(text)
    return CallToolResult(content=[TextContent(type="text", text=text.decode())], structured_content=plain)


def _packed(pack: Document) -> CallToolResult:
    """A context pack as structured content, with its text as the text content."""
    whole = {"query": pack["query"], "snapshot": pack["snapshot"], "candidates": [], "evidence": []}
    plain: Document = msgspec.json.decode(msgspec.json.encode(pack, enc_hook=str))
    content = whole | {"summary_text": pack["text"], "context": plain}
    return CallToolResult(content=[TextContent(type="text", text=pack["text"])], structured_content=content)


def _scope(given: str, who: Principal) -> dict[str, str] | None:
    """The scope of an observation; by default the caller's only scope.

    Raises:
        Problem: the given scope is malformed.
    """
    mine = who.scopes or ()
    text = given or (next(iter(mine)) if len(mine) == 1 else "")
    if not text:
        return None
    kind, _, name = _scope_name(text).partition(":")
    return {"type": kind, "id": name}


def _scope_name(given: str) -> str:
    """A scope as text.

    Raises:
        Problem: it is malformed.
    """
    try:
        return parse_scope(given)
    except ValueError as error:
        raise Problem(422, "invalid-request", f"scope: {error}") from None


def _dumped(parts: Sequence[BaseModel] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [part.model_dump(mode="json", exclude_unset=True) for part in parts]
