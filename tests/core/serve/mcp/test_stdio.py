"""The tools over stdio, and what their processes load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as Tools
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult

from memstate_core.serve.mcp.sdk import remove_sdk_spans
from tests.core.serve.mcp.calls import TOOLS, Locked, call, document, over_stdio, said
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow


def test_help_loads_none_of_what_servers_and_clients_need() -> None:
    heavy = [
        "mcp",
        "mcp_types",
        "fastapi",
        "uvicorn",
        "starlette",
        "prometheus_client",
        "opentelemetry",
        "httpx2",
        "torch",
    ]
    script = (
        "import sys\nfrom memstate_pipeline.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"sys.exit(str([m for m in {heavy} if m in sys.modules] or ''))"
    )
    response = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ("  mcp" in response.stdout or " mcp " in response.stdout, response.stderr.strip()) == (True, "")


def test_a_server_without_the_package_serves_the_rest() -> None:
    script = (
        "import sys; sys.modules['mcp'] = None\n"
        "from memstate_core.serve.app import application\nfrom memstate_core.serve.service import Service\n"
        "from memstate_core.serve.options import Options\nfrom memstate_core.run.store import open_store\n"
        "import pathlib\n"
        "from memstate_core.serve.app import api\n"
        "app = api(Service(open_store(pathlib.Path('/nowhere'), {}), Options()))\n"
        "assert app.state.tools is None and '/mcp' not in [getattr(r, 'path', '') for r in app.routes]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_over_stdio_what_is_handed_over_is_there_after_the_night(home: Path) -> None:
    fact = {
        "text": "The Ferry Yard reopens on the 3rd of May with a brass band.",
        "scope": "user:ines",
        "actor": "Ines",
    }

    async def hand_over(tools: Tools) -> list[Any]:
        listed = [tool.name for tool in (await tools.list_tools()).tools]
        return [
            listed,
            await tools.call_tool("memory_query", {"query": "brass band", "scope": "user:ines"}),
            await tools.call_tool("memory_ingest", fact),
            await tools.call_tool("memory_ingest", fact),
        ]

    listed, before, first, second = call(over_stdio(home), hand_over)
    assert listed == TOOLS
    assert document(before)["snapshot"] == "s0/1"
    assert document(first)["observation_ids"] == document(second)["observation_ids"]
    lines = [json.loads(line) for line in (home / "mcp.log").read_text().splitlines()]
    assert [line["message"] for line in lines if line["logger"] == "memstate.serve"] == ["serving s0/1"]
    assert not [line for line in lines if "brass" in json.dumps(line)]
    night = run_memstate(home, "maintain", "--now", "2026-05-10T00:00:00Z", "--json")
    assert (night.code, night.document["counts"]["evidence"]) == (0, 1)

    async def ask(tools: Tools) -> CallToolResult:
        return await tools.call_tool("memory_query", {"query": "When does the yard reopen with a brass band?"})

    found = document(call(over_stdio(home, "--scope", "user:ines", "--read-only"), ask))
    assert (found["snapshot"], found["evidence"][0]["text"]) == ("s0/2", fact["text"])


def test_over_stdio_only_the_scopes_that_were_named_are_seen(locked: Locked) -> None:
    _, _, store = locked

    async def pry(tools: Tools) -> list[Any]:
        names = [tool.name for tool in (await tools.list_tools()).tools]
        return [
            names,
            await tools.call_tool("memory_topic", {"topic_id": "yard"}),
            await tools.call_tool("nothing", {}),
        ]

    names, yard, nothing = call(over_stdio(store.home.root, "--scope", "user:b", "--read-only"), pry)
    assert names == TOOLS[:4]
    assert "no topic has the id 'yard'" in said(yard)
    assert "nothing" in said(nothing)


def test_wrong_usage_is_reported_before_the_protocol_begins(tmp_path: Path) -> None:
    response = run_memstate(tmp_path / "home", "mcp", "--scope", "planet:earth", "--json")
    assert response.code == 2
    assert "'planet:earth' is not a scope" in response.document["error"]["message"]


def test_the_sdk_starts_with_its_span_middleware_and_nothing_else() -> None:
    """`memstate_core.serve.mcp.sdk` removes what a bare server starts with; look there when this fails."""
    assert [type(each).__name__ for each in Server("bare").middleware] == ["OpenTelemetryMiddleware"]
    server: MCPServer[None] = MCPServer("whole")
    before = [type(each).__name__ for each in server.middleware]
    remove_sdk_spans(server)
    after = [type(each).__name__ for each in server.middleware]
    assert before == ["OpenTelemetryMiddleware", *after]
    assert after, "checks of the SDK's own stay"
