"""Limits below HTTP: the size and duration of a request's head, trailers, and responses that the client does not read.

This is the one module that knows uvicorn's protocol class (uvicorn 0.34 to 0.54, with httptools or h11): it overrides
asyncio's callbacks and the httptools callback `on_body`, and reads `cycle`, `transport` and `loop`. The tests of
`tests/core/serve/http/test_connections.py` drive real sockets against it and fail when a later uvicorn differs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from memstate_core.serve.problems import Problem, response

HEAD_LIMIT = 64 << 10
"""The maximum size in bytes of the lines before a body, and of whatever else arrives without bringing body bytes:
trailers and chunk extensions."""

UNREAD_LIMIT = 16 << 20
"""How many bytes may follow a response that was sent before the whole body had arrived; they are discarded."""

HEAD_SECONDS = 15.0
"""How long a head may take to arrive, from the connection's beginning or the first byte after a response."""

STALL_SECONDS = 15.0
"""How often a connection is checked for a client that does not read; after two checks without progress it is closed."""


def _too_large() -> bytes:
    """The refusal of a head that is too large, as it goes over the wire: no application is asked about it."""
    detail = f"the request line and headers have more than {HEAD_LIMIT} bytes; send less, such as a shorter query"
    refusal = response(Problem(431, "head-too-large", detail, {"Connection": "close"}, limit=HEAD_LIMIT))
    headers = b"".join(name + b": " + value + b"\r\n" for name, value in refusal.raw_headers)
    return b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + headers + b"\r\n" + bytes(refusal.body)


_TOO_LARGE = _too_large()


class LimitedConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's connection, which by itself waits for a head forever, accepts any size, and never drops a client."""

    head_seconds = HEAD_SECONDS
    stall_seconds = STALL_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = self._body_bytes = self._other_bytes = self._unsent = 0
        self._head_ends: asyncio.TimerHandle | None = None
        self._stall_check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Starts the timers."""
        super().connection_made(transport)
        self._start_head_timer()
        self._stall_check = self.loop.call_later(self.stall_seconds, self._check_stall)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timers."""
        self._head_arrived()
        if self._stall_check is not None:
            self._stall_check.cancel()
        super().connection_lost(exc)

    def on_body(self, body: bytes) -> None:
        """Counts the bytes of bodies; called by httptools only. h11 limits trailers by itself."""
        self._body_bytes += len(body)
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        """Passes bytes on and counts those that belong to an unfinished head, to trailers or to an unread body."""
        before, body_bytes = self.cycle, self._body_bytes
        super().data_received(data)
        if self.cycle is not before:
            self._head_arrived()
            return
        brought_body = self._body_bytes > body_bytes or not hasattr(AutoHTTPProtocol, "on_body")
        self._other_bytes = 0 if brought_body else self._other_bytes + len(data)
        is_running = before is not None and not before.response_complete
        if not is_running:
            self._start_head_timer()
            self._head_bytes += len(data)
        unread = UNREAD_LIMIT if before is not None and before.more_body else 0
        if self._head_bytes > HEAD_LIMIT + unread or self._other_bytes > HEAD_LIMIT:
            self._refuse(is_running)

    def _refuse(self, is_running: bool) -> None:
        if not self.transport.is_closing():
            if not is_running:
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _check_stall(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent == self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._stall_check = self.loop.call_later(self.stall_seconds, self._check_stall)

    def _start_head_timer(self) -> None:
        if self._head_ends is None:
            self._head_ends = self.loop.call_later(self.head_seconds, self.transport.close)

    def _head_arrived(self) -> None:
        self._head_bytes = self._other_bytes = 0
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None
