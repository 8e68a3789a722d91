"""Request bodies are read completely before a route runs, within limits on size, time and nesting depth."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from memstate_core.serve.http.middleware import Guard
from memstate_core.serve.problems import Problem

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_DRAINED = 16
"""A body of up to this many times the limit is read to its end before it is refused."""


class BodyLimits(Guard):
    """Reads bodies within the limits and passes them on whole."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body and passes the request on."""
        try:
            async with asyncio.timeout(self.options.body_seconds):
                body = await self._read(Headers(scope=scope), receive)
        except TimeoutError:
            detail = f"the body did not arrive within {self.options.body_seconds:g} s"
            raise Problem(408, "request-timeout", detail, {"Connection": "close"}) from None
        if body is None:
            return
        if _is_deeper(body, self.options.depth_limit):
            detail = f"found arrays or objects nested deeper than {self.options.depth_limit} levels"
            raise Problem(400, "too-deep", detail)
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None if the client has disconnected.

        A body somewhat too large is read to its end, since many clients do not read while they send.
        """
        limit, length = self.options.body_limit, 0
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > _DRAINED * limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            piece = message.get("body", b"")
            length += len(piece)
            pieces.append(piece)
            if length > limit:
                pieces.clear()
            is_last = not message.get("more_body", False)
            if length > limit and (is_last or length > _DRAINED * limit):
                raise _too_large(limit)
            if is_last:
                return b"".join(pieces)


def _too_large(limit: int) -> Problem:
    detail = f"the body has more than {limit} bytes; send less at a time, or start the server with --max-body-mib"
    return Problem(413, "content-too-large", detail, {"Connection": "close"}, limit=limit)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _is_deeper(body: bytes, levels: int) -> bool:
    """Whether brackets outside strings are nested deeper; a heuristic for bodies that are not JSON."""
    if body.count(b"[") + body.count(b"{") <= levels:
        return False
    depth = 0
    for bracket in re.findall(rb"[\[\]{}]", _STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > levels:
            return True
    return False
