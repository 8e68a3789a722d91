"""ASGI middleware for every route: request ids and the request log.

Authentication, body limits and timeouts are modules of their own. Plain ASGI
middleware, so that the framework's own error responses pass through it too.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.serve.options import Options
from memstate_core.serve.problems import Problem, response
from memstate_core.serve.telemetry.log import ACCESS

REQUEST_ID = "X-Request-Id"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}").fullmatch
_access = logging.getLogger(ACCESS)
_log = logging.getLogger("memstate.serve")


class Guard(ABC):
    """The base of the middleware; passes on everything that is not an HTTP request."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self.app, self.options = app, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request itself or passes it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self.handle(scope, receive, send)
        except Problem as problem:
            await response(problem, request_id_of(scope))(scope, receive, send)

    @abstractmethod
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request.

        Raises:
            Problem: the request is refused.
        """


def request_id_of(scope: MutableMapping[str, Any]) -> str | None:
    """The id of a request, if it has been assigned."""
    found = scope.get("state", {}).get("request_id")
    return found if isinstance(found, str) else None


class AccessLog(Guard):
    """Assigns each request an id, the caller's own if it is well-formed, and logs the request."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Logs method, path, status and duration; never the query string or a body."""
        given = Headers(scope=scope).get(REQUEST_ID, "")
        name = given if _GIVEN_ID(given) else secrets.token_hex(16)
        scope.setdefault("state", {})["request_id"] = name
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = name
            await send(message)

        facts = {"request_id": name, "method": scope["method"], "path": scope["path"]}
        try:
            await self.app(scope, receive, sending)
        except Exception:
            _log.exception("a request failed", extra={"facts": facts})
            if not status:
                raise
        finally:
            spent = round(1e3 * (time.perf_counter() - began), 1)
            who = scope["state"].get("principal")
            entry = facts | {"caller": who.name if who else None, "status": status, "ms": spent}
            _access.info("request", extra={"facts": entry})
