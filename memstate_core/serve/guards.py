"""What stands before every route: request ids and the access log, the key. Bodies are checked beside it.

Plain ASGI applications around another one, so that errors of the framework pass through them too.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
import uuid
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.serve.log import ACCESS
from memstate_core.serve.options import Options, is_loopback
from memstate_core.serve.problems import Problem, response

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
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
            _access.info("request", extra={"facts": facts | {"status": status, "ms": spent}})


class KeyCheck(Guard):
    """Asks for the key where there is one; where there is none, for a caller who means this machine."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets pass who may."""
        headers = Headers(scope=scope)
        if scope["path"] not in OPEN_PATHS:
            if self.options.api_key is not None:
                _require_key(headers, self.options.api_key)
            else:
                _require_local_name(headers)
        await self.app(scope, receive, send)


def _require_key(headers: Headers, key: str) -> None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    shown = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    # Both are compared, and in constant time, so that an answer's time tells nothing.
    matches = [hmac.compare_digest(one.encode("latin-1", "replace"), key.encode()) for one in shown]
    if not any(matches):
        expected = "expected the server's key as X-API-Key, or as a bearer token in Authorization"
        found = "the key is not the right one" if any(shown) else "the request shows no key"
        raise Problem(401, "unauthorized", f"{found}: {expected}", {"WWW-Authenticate": "Bearer"})


def _require_local_name(headers: Headers) -> None:
    """Refuses names that a foreign page has made to point here (DNS rebinding)."""
    host = headers.get("host", "")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if not is_loopback(name):
        detail = f"found Host {host[:100]!r}, expected localhost or a loopback address: this server asks for no key"
        raise Problem(403, "foreign-host", detail)
