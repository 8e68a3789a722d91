"""MCP over streamable HTTP, as a route of the application behind the same middleware as all others.

It is stateless: each request carries its own key and gets a JSON response. There is no session id to steal, and any
number of servers can share an address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memstate_core.serve.auth.principal import Principal
from memstate_core.serve.mcp.server import memory_server
from memstate_core.serve.problems import Problem
from memstate_core.serve.service import Service

PATH = "/mcp"


class Mounted:
    """The endpoint; it works while `running` is entered."""

    def __init__(self, service: Service) -> None:
        server = memory_server(service, _caller)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=service.options.body_limit,
            # The authentication middleware checks the Host header; it knows whether a key was given.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._manager: StreamableHTTPSessionManager = server.session_manager
        self.route = Route(PATH, self, methods=["POST"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the MCP session manager; can be entered once."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one message.

        Raises:
            Problem: a page of another origin sent it.
        """
        scope["route"] = self.route
        _check_origin(Headers(scope=scope))
        await self._manager.handle_request(scope, receive, send)


def _caller(context: Context[Any, Any]) -> Principal:
    """The authenticated caller."""
    request: Any = context.request_context.request
    who: Principal = request.state.principal
    return who


def _check_origin(headers: Headers) -> None:
    """Refuses requests from pages of another origin, as the protocol requires."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        detail = f"found Origin {origin[:100]!r}, expected none or that of this server"
        raise Problem(403, "foreign-origin", detail)
