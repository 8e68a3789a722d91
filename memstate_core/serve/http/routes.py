"""The HTTP routes. Their work is done by `memstate_core.serve.service` and `memstate_core.serve.reading`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse

from memstate_core.model import answers
from memstate_core.model.scope import parse_scope
from memstate_core.retrieve.views.fact_pages import FactFilter
from memstate_core.retrieve.views.fact_pages import Position as FactPosition
from memstate_core.retrieve.views.resources import Position as ResourcePosition
from memstate_core.retrieve.views.resources import ResourceFilter
from memstate_core.retrieve.views.topic_pages import Position
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.cursors import position_of
from memstate_core.serve.http.body_route import BodyRoute
from memstate_core.serve.http.metrics import MEDIA_TYPE as METRICS_TYPE
from memstate_core.serve.http.metrics import Metrics
from memstate_core.serve.http.request_bodies import ContextBody, FeedbackBody, Moment, QueryBody, ScopeName
from memstate_core.serve.http.well_formed import well_formed
from memstate_core.serve.observations import observations_in
from memstate_core.serve.problems import MEDIA_TYPE, Problem
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
}
INGEST_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "oneOf": [
                        {"$ref": "#/components/schemas/Observation"},
                        {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Observation"}},
                    ]
                }
            }
        },
    }
}
health = APIRouter(tags=["health"], responses=PROBLEMS, dependencies=[Depends(well_formed)])
v1 = APIRouter(prefix="/v1", tags=["memory"], responses=PROBLEMS, dependencies=[Depends(well_formed)])
bodies = APIRouter(prefix="/v1", tags=["memory"], responses=PROBLEMS, route_class=BodyRoute)


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _principal(request: Request) -> Principal:
    """The authenticated caller, set by the authentication middleware."""
    who: Principal = request.state.principal
    return who


async def _body(request: Request) -> bytes:
    """The request body, which the route reads itself."""
    return await request.body()


Here = Annotated[Service, Depends(_service)]
Who = Annotated[Principal, Depends(_principal)]
AsOf = Annotated[Moment | None, Query(description="Read the state as of this time, ISO 8601.")]
Body = Annotated[bytes, Depends(_body)]
PageName = Annotated[str, Path(description="The file name of the page.", pattern=r"^[A-Za-z0-9_-]{1,200}\.html$")]
_NO_SCRIPTS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def _json(document: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, media_type="application/json")


@health.get("/healthz", response_model=response_model(answers.Health))
async def healthz() -> Response:
    """Liveness: the process answers."""
    return _json({"status": "ok"})


@health.get("/readyz", response_model=response_model(answers.Readiness))
async def readyz(
    here: Here, who: Who, shard: Annotated[str | None, Query(max_length=64, description="Only this shard.")] = None
) -> Response:
    """Readiness: the served snapshot, its age, the run that published it, and what is served of each shard."""
    found = here.readiness(who) if shard is None else here.shard_readiness(who, shard)
    if found is None:
        raise Problem(404, "not-found", f"no shard {shard}; /readyz lists all")
    return _json(found)


@health.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, who: Who) -> Response:
    """Prometheus metrics; needs an admin key for all scopes."""
    who.require(Role.ADMIN)
    who.require_all()
    found: Metrics = request.app.state.metrics
    return Response(found.text(), media_type=METRICS_TYPE)


@health.get("/health", response_model=response_model(answers.Health))
async def alive() -> Response:
    """Liveness: the process answers."""
    return _json({"status": "ok"})


@health.get("/health/graph", response_model=response_model(answers.GraphHealth))
def graph(here: Here, who: Who) -> Response:
    """Whether a graph is served, with counts of what the caller may read."""
    return _json(here.graph_health(who))


@bodies.post("/query", response_model=response_model(answers.QueryAnswer))
def query(here: Here, who: Who, body: QueryBody) -> Response:
    """Topics and evidence that answer a question, from one published snapshot."""
    return _json(here.query(who, body.question(), body.record, body.pending))


@bodies.post("/context", response_model=response_model(answers.ContextAnswer))
def context(here: Here, who: Who, body: ContextBody) -> Response:
    """A text for a prompt within a token budget, each line cited, from one published snapshot."""
    return _json(here.context(who, body.question(), body.budget, body.record, body.place(), body.tokenizer))


@v1.get("/topics", response_model=response_model(answers.TopicsPage))
def topics(
    here: Here,
    who: Who,
    scope: Annotated[list[ScopeName] | None, Query(description="TYPE:ID; all scopes by default.")] = None,
    cursor: Annotated[str | None, Query(max_length=4096, description="`next_cursor` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The served topics in pages, ordered by scope and id."""
    after = _position(cursor, Position)
    scopes = None if scope is None else [_checked("scope", parse_scope, each) for each in scope]
    return _json(here.topics(who, scopes, after, limit))


@v1.get("/topics/{topic_id:path}/history", response_model=response_model(answers.TopicRecord))
def history(
    here: Here,
    who: Who,
    topic_id: str,
    expand: Annotated[bool, Query(description="Include the revisions that summaries replaced.")] = False,
    as_of: AsOf = None,
) -> Response:
    """One topic with all revisions of its fields and of its title, summary and kind."""
    return _json(here.topic(who, topic_id, history=True, expand=expand, as_of=as_of))


@v1.get("/topics/{topic_id:path}", response_model=response_model(answers.TopicRecord))
def topic(
    here: Here,
    who: Who,
    topic_id: str,
    as_of: AsOf = None,
    pending: Annotated[bool, Query(description="Include accepted observations that are not published yet.")] = False,
) -> Response:
    """One topic by its id, an alias, or the id of a topic that was merged into it."""
    return _json(here.topic(who, topic_id, as_of=as_of, pending=pending))


@v1.get("/facts", response_model=response_model(answers.FactsPage))
def facts(
    here: Here,
    who: Who,
    subject: Annotated[
        str | None, Query(max_length=4096, description="The id, an alias, the key or the title of a topic.")
    ] = None,
    predicate: Annotated[str | None, Query(max_length=4096, description="A field, or the kind of an edge.")] = None,
    scope: Annotated[list[ScopeName] | None, Query(description="TYPE:ID; all scopes by default.")] = None,
    as_of: AsOf = None,
    history: Annotated[bool, Query(description="Include facts that were superseded or ended.")] = False,
    cursor: Annotated[str | None, Query(max_length=16_384, description="`next_cursor` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Facts as subject, predicate and object, in pages: values of fields, and edges that name a relation."""
    after = _position(cursor, FactPosition)
    scopes = None if scope is None else [_checked("scope", parse_scope, each) for each in scope]
    return _json(here.facts(who, scopes, FactFilter(subject, predicate, as_of, history), after, limit))


@v1.get("/resources", response_model=response_model(answers.ResourcesPage))
def resources(
    here: Here,
    who: Who,
    uri: Annotated[str | None, Query(max_length=4096, description="Only the resource with this URI.")] = None,
    parent: Annotated[str | None, Query(max_length=4096, description="Only the children of this URI.")] = None,
    roots: Annotated[bool, Query(description="Only resources whose parent is none, or no resource.")] = False,
    content: Annotated[bool, Query(description="Include the whole content of each.")] = False,
    scope: Annotated[list[ScopeName] | None, Query(description="TYPE:ID; all scopes by default.")] = None,
    as_of: AsOf = None,
    cursor: Annotated[str | None, Query(max_length=16_384, description="`next_cursor` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Workspace resources in pages, by scope and URI: all, the roots of the tree, the children of one, or one."""
    _at_most_one(uri=uri is not None, parent=parent is not None, roots=roots)
    after = _position(cursor, ResourcePosition)
    scopes = None if scope is None else [_checked("scope", parse_scope, each) for each in scope]
    return _json(here.resources(who, scopes, ResourceFilter(uri, parent, roots, content, as_of), after, limit))


@v1.get("/runs", response_model=response_model(answers.RunsAnswer))
def runs(here: Here, who: Who, limit: Annotated[int, Query(ge=1, le=200)] = 20) -> Response:
    """The latest runs, newest first."""
    return _json(here.runs(who, limit))


@v1.get("/reports/{page}", response_class=HTMLResponse)
def report(here: Here, who: Who, page: PageName) -> HTMLResponse:
    """The page of a run or correction; `index.html` lists them all. For callers who may read every scope."""
    try:
        return HTMLResponse(here.report(who, page), headers=_NO_SCRIPTS)
    except FileNotFoundError:
        raise Problem(404, "not-found", f"no report page {page}; index.html lists all") from None


@v1.post("/ingest", status_code=202, response_model=response_model(answers.IngestAnswer), openapi_extra=INGEST_BODY)
def ingest(here: Here, who: Who, body: Body) -> Response:
    """Accepts one observation or a list. Durable when it answers; visible after the next run."""
    try:
        rows = observations_in(body)
    except msgspec.MsgspecError as error:
        detail = f"the body is not JSON: {error}; expected one observation, or a list of them"
        raise Problem(422, "broken-json", detail) from None
    if not any(rows):
        raise Problem(422, "no-observation", "found no observation, expected one object or a list of them")
    return _json(here.ingest(who, rows, alone=not body.lstrip().startswith(b"[")), 202)


@bodies.post("/feedback", status_code=202, response_model=response_model(answers.FeedbackAnswer))
def feedback(here: Here, who: Who, body: FeedbackBody) -> Response:
    """Records whether a topic was useful. Durable when it answers; applied by the next run."""
    return _json(here.feedback(who, body.topic_id, body.fields, body.failed, body.at), 202)


def _position(cursor: str | None, of: Any) -> Any:
    """The position of a cursor; None without one."""
    return None if cursor is None else _checked("cursor", lambda given: position_of(given, of), cursor)


def _at_most_one(**given: bool) -> None:
    """Refuses parameters that exclude each other.

    Raises:
        RequestValidationError: more than one is given.
    """
    found = [name for name, is_given in given.items() if is_given]
    if len(found) > 1:
        msg = f"found {' and '.join(found)}, expected at most one of {', '.join(given)}"
        raise RequestValidationError([{"type": "value_error", "loc": ("query", found[-1]), "msg": msg}])


def _checked(name: str, read: Any, given: str) -> Any:
    """Parses a query parameter.

    Raises:
        RequestValidationError: it is invalid.
    """
    try:
        return read(given)
    except ValueError as error:
        raise RequestValidationError([{"type": "value_error", "loc": ("query", name), "msg": str(error)}]) from None
