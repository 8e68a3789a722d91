"""The calls of the API as values: request, type of the answer, and whether the call may be repeated.

The clients turn these functions into methods, so these signatures and docstrings are theirs too. Arguments left out
are not sent; the server's defaults apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from memstate_core.model import answers
from memstate_core.model.observation import Observation, Scope

T_co = TypeVar("T_co", bound=answers.Answer, covariant=True)
ScopeGiven = str | Scope | Mapping[str, str]
ObservationGiven = Observation | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """A request that has not been sent.

    Attributes:
        method: the HTTP method.
        path: the path on the server.
        answer: the type of a successful answer.
        params: the query string.
        body: the JSON body; None sends none.
        repeatable: whether the call is idempotent.
        patient: whether to retry while the server is unavailable; health checks do not.
    """

    method: str
    path: str
    answer: type[T_co]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    repeatable: bool = True
    patient: bool = True


def query(
    q: str,
    *,
    scope: ScopeGiven | Sequence[ScopeGiven] | None = None,
    top_k: int | None = None,
    evidence_k: int | None = None,
    stages: Iterable[str] | None = None,
    explain: bool | None = None,
    topic_ids: Sequence[str] | None = None,
    field_names: Sequence[str] | None = None,
    as_of: datetime | str | None = None,
    history: bool | None = None,
    pending: bool | None = None,
    evidence_kinds: Sequence[str] | None = None,
    tool: str | None = None,
    status: str | None = None,
    path: str | None = None,
    record: bool | None = None,
) -> Call[answers.QueryAnswer]:
    """Asks a question: topics and evidence from one published snapshot.

    If the answer is lost and the question is sent again, its topics may be recorded as accessed twice.

    Args:
        q: the question.
        scope: the scope or scopes to search, each as `TYPE:ID` or as a mapping with type and id; by default every
            scope that the key may read.
        top_k: how many topics to return.
        evidence_k: how much evidence to return.
        stages: the ranking stages to use beside term matching: any of semantic, structural, temporal.
        explain: return the parts of each score.
        topic_ids: consider only these topics.
        field_names: return only these fields.
        as_of: answer from the state at that time; a datetime with its offset, or ISO 8601.
        history: return older revisions of fields too.
        pending: include accepted observations that are not published yet.
        evidence_kinds: return only evidence of these kinds, such as tool_call.
        tool: return only evidence whose details name this tool.
        status: return only evidence whose details have this status.
        path: return only evidence whose details have this path, or one below it.
        record: whether the answer is recorded as an access of its candidates.
    """
    body = {
        "q": q,
        "scope": _scopes(scope),
        "top_k": top_k,
        "evidence_k": evidence_k,
        "stages": None if stages is None else list(stages),
        "explain": explain,
        "topic_ids": None if topic_ids is None else list(topic_ids),
        "field_names": None if field_names is None else list(field_names),
        "as_of": _moment(as_of),
        "history": history,
        "pending": pending,
        "evidence_kinds": None if evidence_kinds is None else list(evidence_kinds),
        "tool": tool,
        "status": status,
        "path": path,
        "record": record,
    }
    return Call("POST", "/v1/query", answers.QueryAnswer, body=_given(body))


def context(
    q: str,
    budget: int,
    *,
    scope: ScopeGiven | Sequence[ScopeGiven] | None = None,
    stages: Iterable[str] | None = None,
    as_of: datetime | str | None = None,
    record: bool | None = None,
    policy: str | None = None,
    tokenizer: str | None = None,
    workspace: Mapping[str, str] | None = None,
) -> Call[answers.ContextAnswer]:
    """Builds a text for a prompt of at most `budget` tokens, each line cited; arguments as for `query`.

    Args:
        q: the question.
        budget: the maximum number of tokens.
        scope: as for `query`.
        stages: as for `query`.
        as_of: as for `query`.
        record: as for `query`.
        policy: auto (the default: core blocks, active sessions and all that the question finds), task (core blocks and
            active sessions, without a search) or workspace (core blocks, and the resources that the question finds).
        tokenizer: what counts tokens: model (the default: the tokenizer of the embedding model) or characters (one for
            four of them).
        workspace: `root`, `branch` and `commit` of where the question is asked from, for warnings of drift.
    """
    body = {
        "q": q,
        "budget": budget,
        "scope": _scopes(scope),
        "stages": None if stages is None else list(stages),
        "as_of": _moment(as_of),
        "record": record,
        "policy": policy,
        "tokenizer": tokenizer,
        "workspace": None if workspace is None else dict(workspace),
    }
    return Call("POST", "/v1/context", answers.ContextAnswer, body=_given(body))


def topic(
    topic_id: str, *, as_of: datetime | str | None = None, pending: bool | None = None
) -> Call[answers.TopicRecord]:
    """Reads a topic by its id, an alias, or the id of a topic merged into it; raises `NotFound` if there is none."""
    params = _given({"as_of": _moment(as_of), "pending": pending})
    return Call("GET", _topic_path(topic_id), answers.TopicRecord, params)


def history(
    topic_id: str, *, expand: bool | None = None, as_of: datetime | str | None = None
) -> Call[answers.TopicRecord]:
    """Reads a topic with all its revisions; `expand` includes those replaced by summaries."""
    params = _given({"expand": expand, "as_of": _moment(as_of)})
    return Call("GET", f"{_topic_path(topic_id)}/history", answers.TopicRecord, params)


def topics_page(
    scope: ScopeGiven | Sequence[ScopeGiven] | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[answers.TopicsPage]:
    """Reads one page of the served topics, ordered by scope and id; pass its `next_cursor` to get the next one."""
    scopes = None if scope is None else _scope_texts(scope)
    return Call("GET", "/v1/topics", answers.TopicsPage, _given({"scope": scopes, "cursor": cursor, "limit": limit}))


def facts_page(
    subject: str | None = None,
    predicate: str | None = None,
    *,
    scope: ScopeGiven | Sequence[ScopeGiven] | None = None,
    as_of: datetime | str | None = None,
    history: bool | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[answers.FactsPage]:
    """Reads one page of facts; pass its `next_cursor` to get the next one.

    Args:
        subject: the id, an alias, the key or the title of a topic; None for all.
        predicate: a field, or the kind of an edge; None for all.
        scope: one scope or several; None for all.
        as_of: facts that were known and held then.
        history: include facts that were superseded or ended, and those of an archived topic whose id is given.
        cursor: where to begin.
        limit: how many facts to return at most.
    """
    params = {
        "subject": subject,
        "predicate": predicate,
        "scope": None if scope is None else _scope_texts(scope),
        "as_of": _moment(as_of),
        "history": history,
        "cursor": cursor,
        "limit": limit,
    }
    return Call("GET", "/v1/facts", answers.FactsPage, _given(params))


def resources_page(
    *,
    uri: str | None = None,
    parent: str | None = None,
    roots: bool | None = None,
    content: bool | None = None,
    scope: ScopeGiven | Sequence[ScopeGiven] | None = None,
    as_of: datetime | str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[answers.ResourcesPage]:
    """Reads one page of workspace resources; pass its `next_cursor` to get the next one.

    Args:
        uri: only the resource with this URI.
        parent: only the children of this URI.
        roots: only resources whose parent is none, or no resource.
        content: include the whole content of each.
        scope: one scope or several; None for all.
        as_of: the resources as known at that time; a datetime with its offset, or ISO 8601.
        cursor: where to begin.
        limit: how many resources to return at most.
    """
    params = {
        "uri": uri,
        "parent": parent,
        "roots": roots,
        "content": content,
        "scope": None if scope is None else _scope_texts(scope),
        "as_of": _moment(as_of),
        "cursor": cursor,
        "limit": limit,
    }
    return Call("GET", "/v1/resources", answers.ResourcesPage, _given(params))


def ingest(observations: ObservationGiven | Iterable[ObservationGiven]) -> Call[answers.IngestAnswer]:
    """Sends one observation or several, accepted all or none; durable on return, visible after the next run.

    Ids are derived from content, so the next run recognises observations that were sent twice as duplicates.
    """
    body = observations if isinstance(observations, Observation | Mapping) else list(observations)
    return Call("POST", "/v1/ingest", answers.IngestAnswer, body=body)


def feedback(
    topic_id: str,
    *,
    used: bool = False,
    failed: bool = False,
    fields: Sequence[str] | None = None,
    at: datetime | str | None = None,
) -> Call[answers.FeedbackAnswer]:
    """Records whether a topic was useful: exactly one of `used` and `failed`. Never sent twice."""
    body = {"topic_id": topic_id, "used": used, "failed": failed}
    more = _given({"fields": None if fields is None else list(fields), "at": _moment(at)})
    return Call("POST", "/v1/feedback", answers.FeedbackAnswer, body=body | more, repeatable=False)


def runs(*, limit: int | None = None) -> Call[answers.RunsAnswer]:
    """Lists the latest runs, newest first."""
    return Call("GET", "/v1/runs", answers.RunsAnswer, _given({"limit": limit}))


def health() -> Call[answers.Health]:
    """Checks that the process answers."""
    return Call("GET", "/healthz", answers.Health, patient=False)


def ready() -> Call[answers.Readiness]:
    """Describes the served snapshot, its age and its run; raises `ServerFailed` at once if there is none."""
    return Call("GET", "/readyz", answers.Readiness, patient=False)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _topic_path(topic_id: str) -> str:
    return f"/v1/topics/{quote(topic_id, safe='')}"


def _moment(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at


def _scopes(given: ScopeGiven | Sequence[ScopeGiven] | None) -> Any:
    if given is None or isinstance(given, (str, Scope, Mapping)):
        return given
    return list(given)


def _scope_texts(given: ScopeGiven | Sequence[ScopeGiven]) -> list[str]:
    several = [given] if isinstance(given, (str, Scope, Mapping)) else given
    return [_scope_text(each) for each in several]


def _scope_text(given: ScopeGiven) -> str:
    if isinstance(given, str):
        return given
    kind, name = (given.type, given.id) if isinstance(given, Scope) else (given["type"], given.get("id"))
    return f"{kind}:{name or ''}"
