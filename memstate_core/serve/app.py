"""The application: routes, errors as problem documents, guards around both, and its description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from memstate_core import __version__
from memstate_core.ingest.reasons import Rejection
from memstate_core.model.errors import MemstateError
from memstate_core.model.observation import Observation
from memstate_core.serve.answers import ProblemDocument
from memstate_core.serve.bodies import BodyCheck
from memstate_core.serve.guards import AccessLog, KeyCheck, request_id_of
from memstate_core.serve.observations import ObservationsRefused
from memstate_core.serve.problems import Problem, problem_of, problem_of_status, response
from memstate_core.serve.routes import health, v1
from memstate_core.serve.service import Service

_COMPONENT = "#/components/schemas/{name}"
_TOLD = {
    404: "nothing is here; /docs lists what can be asked",
    405: "this path does not take this method; the header Allow lists those that it takes",
}


def application(service: Service) -> ASGIApp:
    """The service over HTTP, guarded. It is started and closed with the application."""
    options = service.options
    return AccessLog(KeyCheck(BodyCheck(api(service), options), options), options)


def api(service: Service) -> FastAPI:
    """The routes of a service, without the guards."""
    app = FastAPI(title="memstate", version=__version__, lifespan=_lifespan, redoc_url=None, redirect_slashes=False)
    app.state.service = service
    app.include_router(health)
    app.include_router(v1)
    for kind, tell in PROBLEM_OF.items():
        app.add_exception_handler(kind, _handler(tell))
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    current_default_thread_limiter().total_tokens = service.options.threads
    await anyio.to_thread.run_sync(service.start)
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(service.close)


def _handler(tell: Callable[[Any], Problem]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        return response(tell(error), request_id_of(request.scope))

    return handle


def _invalid(error: RequestValidationError) -> Problem:
    """Where the request is wrong and why; never what it said, which may be private."""
    found = [{"at": ".".join(map(str, each["loc"])), "detail": _message(each)} for each in error.errors()]
    told = "; ".join(f"{each['at']}: {each['detail']}" for each in found[:5])
    return Problem(422, "invalid-request", told or "the request is not valid", errors=found)


def _message(error: dict[str, Any]) -> str:
    return str(error["msg"]).removeprefix("Value error, ")


def _refused(error: ObservationsRefused) -> Problem:
    found = [{"at": place, "reason": reason, "detail": detail} for place, reason, detail in error.refusals]
    detail = f"{len(found)} refused and none taken; the first at {found[0]['at']}: {found[0]['detail']}"
    return Problem(422, "observations-refused", detail, errors=found)


def _framework(error: HTTPException) -> Problem:
    detail = _TOLD.get(error.status_code, str(error.detail))
    return problem_of_status(error.status_code, detail, error.headers)


PROBLEM_OF: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda problem: problem,
    MemstateError: problem_of,
    ObservationsRefused: _refused,
    Rejection: lambda error: Problem(422, "invalid-request", error.detail, reason=error.reason.value),
    RequestValidationError: _invalid,
    HTTPException: _framework,
    OSError: lambda error: Problem(503, "storage", f"the store cannot be used now: {error.strerror or 'an I/O error'}"),
    Exception: lambda _error: Problem(500, "internal", "an error that nobody foresaw; the server's log says more"),
}
"""How each error that may leave a route is told."""


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what is read outside of the framework: observations, problems, keys."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        components = schema.setdefault("components", {})
        _, observation = msgspec.json.schema_components((Observation,), ref_template=_COMPONENT)
        components["schemas"] |= observation | {"ProblemDocument": ProblemDocument.model_json_schema()}
        components["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        schema["security"] = [{}, {"key": []}, {"bearer": []}]
        app.openapi_schema = schema
    return app.openapi_schema
