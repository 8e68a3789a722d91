"""Calls of the tools by the real client of the protocol: a process over stdio, a server over streamable HTTP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client as Tools
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from memstate_core.run.store import Store
from tests.core.serve.conftest import Client

TOOLS = ["memory_query", "memory_topic", "memory_history", "memory_resources", "memory_ingest"]
Work = Callable[[Tools], Awaitable[Any]]
Locked = tuple[Client, dict[str, str], Store]
"""A server, the keys of its callers, and its store."""


def call(connect: Callable[[], AbstractAsyncContextManager[Tools]], work: Work) -> Any:
    async def run() -> Any:
        async with connect() as tools:
            return await work(tools)

    return anyio.run(run)


def over_http(client: Client, key: str | None = None, **how: Any) -> Callable[[], AbstractAsyncContextManager[Tools]]:
    @asynccontextmanager
    async def connect() -> Any:
        headers = {} if key is None else {"X-API-Key": key}
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        async with http, Tools(streamable_http_client(f"{client.url}/mcp", http_client=http), **how) as tools:
            yield tools

    return connect


def over_stdio(
    home: Path, *arguments: str, log: Path | None = None
) -> Callable[[], AbstractAsyncContextManager[Tools]]:
    @asynccontextmanager
    async def connect() -> Any:
        command = ["-m", "memstate_pipeline", "--home", str(home), "mcp", *arguments]
        environment = {"HF_HUB_OFFLINE": "1", "PATH": os.environ["PATH"]}
        with (log or home / "mcp.log").open("w") as written:
            process = stdio_client(
                StdioServerParameters(command=sys.executable, args=command, env=environment), written
            )
            async with Tools(process, read_timeout_seconds=120) as tools:
                yield tools

    return connect


def said(result: CallToolResult) -> str:
    assert result.is_error
    assert result.structured_content is None
    return text(result)


def text(result: CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


def document(result: CallToolResult) -> dict[str, Any]:
    """What a tool answers, as programs read it; a model that is shown the text only reads the same."""
    assert not result.is_error, text(result)
    assert result.structured_content is not None
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content
