"""The tools over streamable HTTP, as a route of the application, behind the same guards as every other route.

No session is kept: each request stands for itself, shows its own key, and is answered as JSON. So a stolen session id
is worth nothing, and any number of servers may stand behind one address.
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

from memstate_core.serve.access.principal import Principal
from memstate_core.serve.mcp.server import memory_server
from memstate_core.serve.problems import Problem
from memstate_core.serve.service import Service

PATH = "/mcp"


class Mounted:
    """The endpoint, for as long as `running` is entered."""

    def __init__(self, service: Service) -> None:
        server = memory_server(service, _caller)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=service.options.body_limit,
            # Names of hosts are checked by the guard of all routes, which knows whether a key was shown.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._manager: StreamableHTTPSessionManager = server.session_manager
        self.route = Route(PATH, self, methods=["POST"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keeps the server of tools going; once."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one message.

        Raises:
            Problem: a page of another origin sends it.
        """
        scope["route"] = self.route
        _check_origin(Headers(scope=scope))
        await self._manager.handle_request(scope, receive, send)


def _caller(context: Context[Any, Any]) -> Principal:
    """Who asks, as the guard has found out."""
    request: Any = context.request_context.request
    who: Principal = request.state.principal
    return who


def _check_origin(headers: Headers) -> None:
    """The protocol has servers refuse what a browser sends for a page that is not theirs."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        detail = f"found Origin {origin[:100]!r}, expected none or that of this server"
        raise Problem(403, "foreign-origin", detail)
