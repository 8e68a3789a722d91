"""The ASGI application: routes, error handlers, middleware and the OpenAPI document."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp

from memstate_core import __version__
from memstate_core.model.answers import ProblemDocument
from memstate_core.model.observation import Observation
from memstate_core.serve.auth.keyring import Keyring
from memstate_core.serve.error_responses import PROBLEM_OF
from memstate_core.serve.http.authentication import Authentication
from memstate_core.serve.http.body_limits import BodyLimits
from memstate_core.serve.http.deadline import Deadline
from memstate_core.serve.http.metrics import Measured, Metrics, route_of
from memstate_core.serve.http.middleware import AccessLog, request_id_of
from memstate_core.serve.http.routes import bodies, health, v1
from memstate_core.serve.http.traced import Traced
from memstate_core.serve.http.well_formed import HeadAsGet
from memstate_core.serve.problems import Problem, response
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service

if TYPE_CHECKING:
    from memstate_core.serve.mcp.http import Mounted

NO_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""The framework's own spans and logs would contain paths, which hold ids, and error messages."""

_COMPONENT = "#/components/schemas/{name}"


def application(service: Service) -> ASGIApp:
    """The service over HTTP with all middleware. Service and application start and stop together."""
    options = service.options
    keyring = Keyring(service.keys, options.api_key, time.monotonic)
    routes = api(service)
    limited = BodyLimits(Deadline(HeadAsGet(routes), options), options)
    guarded = Authentication(limited, options, keyring, service.shared)
    return Measured(Traced(AccessLog(guarded, options), route_of), routes.state.metrics)


def api(service: Service) -> FastAPI:
    """The routes of a service, without the middleware."""
    app = FastAPI(
        title="memstate",
        version=__version__,
        lifespan=_lifespan,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    app.state.service, app.state.metrics = service, Metrics(service)
    app.include_router(health)
    app.include_router(bodies)
    app.include_router(v1)
    app.state.tools = _tools(service)
    if app.state.tools is not None:
        app.router.routes.append(app.state.tools.route)
    for kind, problem_of in PROBLEM_OF.items():
        app.add_exception_handler(kind, _handler(problem_of))
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    tools: Mounted | None = app.state.tools
    current_default_thread_limiter().total_tokens = service.options.threads
    await anyio.to_thread.run_sync(service.start)
    try:
        async with nullcontext() if tools is None else tools.running():
            yield
    finally:
        await anyio.to_thread.run_sync(service.close)


def _tools(service: Service) -> Mounted | None:
    """The MCP endpoint; None if the extra `mcp` is not installed."""
    try:
        from memstate_core.serve.mcp.http import Mounted
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        return None
    return Mounted(service)


def _handler(problem_of: Callable[[Any], Problem]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        return response(problem_of(error), request_id_of(request.scope))

    return handle


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what the framework does not know: observations, problem documents, API keys."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        components = schema.setdefault("components", {})
        _, observation = msgspec.json.schema_components((Observation,), ref_template=_COMPONENT)
        problem = response_model(ProblemDocument).model_json_schema()
        components["schemas"] |= observation | {"ProblemDocument": problem}
        components["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        schema["security"] = [{}, {"key": []}, {"bearer": []}]
        app.openapi_schema = schema
    return app.openapi_schema
