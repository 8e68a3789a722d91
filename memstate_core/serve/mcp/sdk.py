"""Adapter for the one behaviour of the MCP SDK (mcp 2.3) that it offers no setting for: its OpenTelemetry spans.

The SDK's class of that middleware is private. Its only public trace is that a bare low-level server starts with it and
with nothing else; `tests/core/serve/mcp/test_stdio.py` fails when a later SDK changes that.
"""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer


def remove_sdk_spans(server: MCPServer[Any]) -> None:
    """Removes the SDK's own spans, which hold names and error messages as callers sent them."""
    spans = {type(each) for each in Server("default").middleware}
    server.middleware[:] = [each for each in server.middleware if type(each) not in spans]
