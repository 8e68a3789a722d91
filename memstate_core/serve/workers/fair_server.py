"""A worker's server: it takes a new connection if no other worker has fewer open.

All workers wait on one socket. Left to the kernel, whichever wakes first takes every connection that waits, and clients
keep theirs open, so one worker answers everything and the others nothing. A worker that has more than another lets the
socket be for `PATIENCE_SECONDS` instead, and then takes one after all.

Invariant: a worker that is busy or hangs delays a connection by no more than that.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import uvicorn

from memstate_core.serve.http.connections import LimitedConnection
from memstate_core.serve.workers.shared import OpenConnections

PATIENCE_SECONDS = 0.01
"""How long a connection is left to a worker that has fewer."""

_FULL_SECONDS = 1.0
"""The pause after the system refused a connection, for want of file descriptors or memory."""
_log = logging.getLogger("memstate.serve")


class _Counted(LimitedConnection):
    """A connection that counts as open until it is lost."""

    def __init__(self, count: OpenConnections, **named: Any) -> None:
        super().__init__(**named)
        self._count = count

    def connection_lost(self, exc: Exception | None) -> None:
        """Counts it as closed."""
        self._count.add(-1)
        super().connection_lost(exc)


class FairServer(uvicorn.Server):
    """One of several servers on one listening socket.

    Args:
        config: of the server; its protocol class is `LimitedConnection`.
        count: the open connections of each worker.
    """

    def __init__(self, config: uvicorn.Config, count: OpenConnections) -> None:
        super().__init__(config)
        self._count = count
        self._listening: socket.socket | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the application, then accepts connections on the one socket given."""
        await super().startup([])
        (self._listening,) = sockets or []
        self._listening.setblocking(False)
        self._count.begin()
        self._watch()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more; then as uvicorn does."""
        if self._pause is not None:
            self._pause.cancel()
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
        self._count.end()
        await super().shutdown(sockets)

    def _watch(self) -> None:
        asyncio.get_running_loop().add_reader(self._socket, self._offered)

    def _offered(self) -> None:
        """A connection waits: takes it, or leaves it for a while to a worker that has fewer."""
        if self._count.is_least():
            self._take()
        else:
            self._wait(PATIENCE_SECONDS)

    def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        self._pause = loop.call_later(seconds, self._waited)

    def _waited(self) -> None:
        self._pause = None
        self._watch()
        self._take()

    def _take(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker took it, or the client has gone
        except OSError as error:
            _log.error("a connection was refused", extra={"facts": {"error": str(error)}})
            self._wait(_FULL_SECONDS)
            return
        self._count.add(1)
        task = asyncio.ensure_future(self._begin(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except OSError:
            self._count.add(-1)
            connection.close()

    def _protocol(self) -> _Counted:
        state = self.lifespan.state
        return _Counted(self._count, config=self.config, server_state=self.server_state, app_state=state)

    @property
    def _socket(self) -> socket.socket:
        assert self._listening is not None
        return self._listening
