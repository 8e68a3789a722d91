"""MCP over standard input and output, for clients that start the server as a child process.

Standard output carries the protocol; logs go to stderr as JSON lines. The user who started the process is the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import Context

from memstate_core.run.store import Store
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.blas_threads import on_one_thread
from memstate_core.serve.mcp.server import memory_server
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service
from memstate_core.serve.telemetry.log import log_as_json


def run(store: Store, options: Options, scopes: frozenset[str] | None, read_only: bool) -> None:
    """Serves until the client closes standard input.

    Args:
        store: the store to serve.
        options: the server options.
        scopes: the scopes that the client may read; None for all.
        read_only: offer no tool that writes.
    """
    log_as_json()
    on_one_thread()
    service = Service(store, options)
    who = Principal("stdio", scopes, Role.READ if read_only else Role.WRITE)

    def caller(_: Context[Any, Any]) -> Principal:
        if service.serving.current is None:
            service.serving.refresh()  # block the first call until a snapshot is open; there are no other callers
        return who

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await anyio.to_thread.run_sync(service.start)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(service.close)

    server = memory_server(service, caller, read_only=read_only, lifespan=lifespan)
    server.run("stdio")
