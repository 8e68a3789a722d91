"""The MCP server, independent of its transport.

Errors reach the model as tool errors with the `detail` of the problem document; where that names another route, with
the tool that does the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from memstate_core import __version__
from memstate_core.model.errors import TopicNotFound
from memstate_core.serve.error_responses import invalid, problem_for
from memstate_core.serve.mcp import descriptions as text
from memstate_core.serve.mcp.sdk import remove_sdk_spans
from memstate_core.serve.mcp.tools import Tools, Who
from memstate_core.serve.problems import Problem
from memstate_core.serve.service import Service
from memstate_core.serve.telemetry.tracing import span

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


class MemoryServer(MCPServer[None]):
    """An MCP server that refuses unknown arguments and reports errors as sentences."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool.

        Raises:
            ToolError: there is no such tool, or an unexpected error occurred.
        """
        expected = {tool.name: list(tool.input_schema["properties"]) for tool in await self.list_tools()}.get(name)
        unknown = [argument for argument in arguments if argument not in (expected or ())]
        if expected is not None and unknown:
            found = ", ".join(repr(argument[:100]) for argument in unknown)
            return _failed(f"{name} takes no argument {found}; expected some of {', '.join(expected)}")
        meta = None if context is None else context.request_context.meta
        try:
            with span("memstate.tool", carrier=meta, tool=name if expected is not None else "none"):
                return await super().call_tool(name, arguments, context)
        except ToolError as error:
            problem = _problem(error.__cause__)
            if problem is None:
                raise
            return _failed(problem.detail)


def memory_server(
    service: Service,
    who: Who,
    *,
    read_only: bool = False,
    lifespan: Lifespan | None = None,
) -> MemoryServer:
    """Builds the server.

    Args:
        service: the service that the tools call.
        who: determines the caller of a request.
        read_only: offer no tool that writes.
        lifespan: a context that is entered while the server runs.
    """
    _keep_root_logger()
    server = MemoryServer(
        "memstate",
        title="memstate: a memory",
        instructions=text.INSTRUCTIONS,
        version=__version__,
        subscriptions=False,
        lifespan=lifespan,
    )
    remove_sdk_spans(server)
    tools = Tools(service, who)
    offered: list[tuple[Callable[..., Any], str, str, ToolAnnotations]] = [
        (tools.memory_query, "Search the memory", text.QUERY, text.READS),
        (tools.memory_topic, "Read a topic", text.TOPIC, text.READS),
        (tools.memory_history, "Read a topic's history", text.HISTORY, text.READS),
        (tools.memory_resources, "Browse resources", text.RESOURCES, text.READS),
        (tools.memory_ingest, "Store an observation", text.INGEST, text.ADDS),
    ]
    for function, title, description, hints in offered:
        if hints.read_only_hint or not read_only:
            server.add_tool(function, title=title, description=description, annotations=hints)
    return server


def _problem(cause: BaseException | None) -> Problem | None:
    if cause is None:
        return None
    if isinstance(cause, TopicNotFound):
        advice = " memory_query finds topics, with the id of each." if cause.needs_list else ""
        return Problem(404, "topic-not-found", cause.message + advice)
    return invalid(cause) if isinstance(cause, ValidationError) else problem_for(cause)


def _failed(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def _keep_root_logger() -> None:
    """Prevents the SDK from installing its own handler on the root logger."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
