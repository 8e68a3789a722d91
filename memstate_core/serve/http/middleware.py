"""What stands before every route: request ids and the access log. Keys, bodies and time are checked beside it.

Plain ASGI applications around another one, so that errors of the framework pass through them too.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
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


class Guard:
    """An application around another one; passes on what is no request."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self.app, self.options = app, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or lets the application within answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self.handle(scope, receive, send)
        except Problem as problem:
            await response(problem, request_id_of(scope))(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Does what the guard is there for.

        Raises:
            Problem: the request goes no further.
        """
        raise NotImplementedError


def request_id_of(scope: MutableMapping[str, Any]) -> str | None:
    """The id of a request, once it has one."""
    found = scope.get("state", {}).get("request_id")
    return found if isinstance(found, str) else None


class AccessLog(Guard):
    """Gives each request an id, the caller's own where it is a plain word, and writes a line about it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Logs method, path, status and time; the query string and bodies are nobody's business."""
        given = Headers(scope=scope).get(REQUEST_ID, "")
        name = given if _GIVEN_ID(given) else uuid.uuid4().hex
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
            told = facts | {"caller": who.name if who else None, "status": status, "ms": spent}
            _access.info("request", extra={"facts": told})
