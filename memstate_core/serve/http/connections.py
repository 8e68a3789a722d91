"""Connections that say too much, or too slowly, before there is a request: their head is limited in size and time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_LIMIT = 64 << 10
"""Bytes that the lines before a body may have, all together."""

UNREAD_LIMIT = 16 << 20
"""Bytes that may follow an answer that was given before the whole body had come: the rest of it is passed over."""

HEAD_SECONDS = 15.0
"""How long they may take to arrive, from a connection's beginning or the first byte after an answer."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class LimitedConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's connection, which waits for a head for ever and takes one of any size."""

    head_seconds = HEAD_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = 0
        self._head_ends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends to wait."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes; those of an unfinished head are counted."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._wait_no_more()
        elif before is None or before.response_complete:
            self._wait()
            self._head_bytes += len(data)
            unread = UNREAD_LIMIT if before is not None and before.more_body else 0
            if self._head_bytes > HEAD_LIMIT + unread and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def _wait(self) -> None:
        if self._head_ends is None:
            self._head_ends = self.loop.call_later(self.head_seconds, self.transport.close)

    def _wait_no_more(self) -> None:
        self._head_bytes = 0
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None
