"""An OpenTelemetry span for each request."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.serve.options import OPEN_PATHS
from memstate_core.serve.telemetry.tracing import parent_of, started, trace

SILENT = OPEN_PATHS | {"/metrics"}
"""Paths that monitoring polls every few seconds; traces of them carry no information."""

_FAILED = 500


class Traced:
    """ASGI middleware: a span for each request, continuing the caller's trace (W3C Trace Context)."""

    def __init__(self, app: ASGIApp, route_of: Callable[[Scope], str]) -> None:
        self._app, self._route_of = app, route_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on inside a span."""
        if trace is None or scope["type"] != "http" or scope["path"] in SILENT:
            await self._app(scope, receive, send)
            return
        with started(scope["method"], parent_of(Headers(scope=scope)), trace.SpanKind.SERVER) as current:
            current.set_attribute("http.request.method", scope["method"])

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._describe(current, scope, message["status"])
                await send(message)

            await self._app(scope, receive, sending)

    def _describe(self, current: trace.Span, scope: Scope, status: int) -> None:
        route = self._route_of(scope)
        current.update_name(f"{scope['method']} {route}")
        current.set_attribute("http.route", route)
        current.set_attribute("http.response.status_code", status)
        if status >= _FAILED:
            current.set_status(trace.StatusCode.ERROR)
