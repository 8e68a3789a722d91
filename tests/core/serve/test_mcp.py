"""The tools for models, by the real client of the protocol: a process over stdio, a server over streamable HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client as Tools
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult

from memstate_core.run.store import Store
from memstate_core.serve.auth.key_file import ID_BYTES, SECRET_BYTES, add, make
from memstate_core.serve.mcp.sdk import remove_sdk_spans
from memstate_core.serve.options import Options
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

TOOLS = ["memory_query", "memory_topic", "memory_history", "memory_resources", "memory_ingest"]
Work = Callable[[Tools], Awaitable[Any]]


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


@pytest.fixture(scope="module")
def locked(
    tmp_path_factory: pytest.TempPathFactory, publish: Publish
) -> Iterator[tuple[Client, dict[str, str], Store]]:
    """A server with keys: of the owner, of the scope with the harbour, for reading it, of the other scope."""
    store = publish(tmp_path_factory.mktemp("tools") / "home", harbour)
    tokens = {"owner": "the-owner"}
    for number, (name, scope, role) in enumerate(
        [("ines", "user:a", "write"), ("guest", "user:a", "read"), ("foreign", "user:b", "write")]
    ):
        entropy = bytes([number]) * (ID_BYTES + SECRET_BYTES)
        made = make(name, scopes=[scope], role=role, entropy=entropy, now=datetime.now(UTC))  # type: ignore[arg-type]
        add(store.home.keys, made.key)
        tokens[name] = made.token
    with served(store, Options(api_key="the-owner", record=False)) as client:
        yield client.until_ready(), tokens, store


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_say_what_they_are_for(locked: tuple[Client, dict[str, str], Store], mode: str) -> None:
    """By the protocol of today, and by the one with a handshake."""
    client, tokens, _ = locked

    async def listed(tools: Tools) -> Any:
        return tools.server_info, tools.instructions, (await tools.list_tools()).tools

    info, instructions, found = call(over_http(client, tokens["ines"], mode=mode), listed)
    assert (info.name, "memory_query" in instructions) == ("memstate", True)
    assert [tool.name for tool in found] == TOOLS
    assert [tool.annotations.read_only_hint for tool in found] == [True, True, True, True, False]
    assert {tool.annotations.idempotent_hint for tool in found} == {True}
    assert {tool.annotations.destructive_hint for tool in found} == {False}
    for tool in found:
        described = [part.get("description") for part in tool.input_schema["properties"].values()]
        assert all(described), tool.name
        assert tool.output_schema["type"] == "object"
        assert len(tool.description) > 100


def test_questions_topics_and_histories_are_answered(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked

    async def ask(tools: Tools) -> list[CallToolResult]:
        return [
            await tools.call_tool("memory_query", {"query": "Is the gate of the ferry yard open?", "scope": "user:a"}),
            await tools.call_tool(
                "memory_query", {"query": "the bench", "scope": ["user:a"], "top_k": 1, "evidence_k": 0}
            ),
            await tools.call_tool("memory_topic", {"topic_id": "gone"}),
            await tools.call_tool("memory_history", {"topic_id": "yard"}),
            await tools.call_tool("memory_history", {"topic_id": "yard", "as_of": "2026-01-10T00:00:00Z"}),
        ]

    results = [document(result) for result in call(over_http(client, tokens["ines"]), ask)]
    asked, bench, gone, history, before = results
    assert (asked["candidates"][0]["topic_id"], asked["snapshot"]) == ("yard", "s0/1")
    assert asked["evidence"][0]["text"] == "The gate of the ferry yard is open again."
    assert ([c["topic_id"] for c in bench["candidates"]], bench["evidence"]) == (["bench"], [])
    assert (gone["id"], gone["resolved_from"]) == ("yard", ["gone"])
    assert [r["value"] for r in history["fields"]["gate"]["history"]] == ["open", "shut"]
    assert [r["value"] for r in before["fields"]["gate"]["history"]] == ["shut"]


def test_an_answer_can_be_one_text_within_a_budget(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked

    async def ask(tools: Tools) -> CallToolResult:
        asked = {"query": "Is the gate open?", "budget": 60, "scope": "user:a"}
        task = await tools.call_tool("memory_query", asked | {"policy": "task", "tokenizer": "characters"})
        found = (task.structured_content or {})["context"]
        assert (found["policy"], found["counted_by"], found["items"]) == ("task", "characters/4", [])
        wrong = await tools.call_tool("memory_query", asked | {"policy": "all"})
        assert wrong.is_error
        assert "'auto', 'task' or 'workspace'" in text(wrong)
        return await tools.call_tool("memory_query", asked)

    result = call(over_http(client, tokens["ines"]), ask)
    assert result.structured_content is not None
    pack = result.structured_content["context"]
    assert pack["tokens"] <= pack["budget"] == 60
    assert text(result) == pack["text"] == result.structured_content["summary_text"] != ""
    assert pack["citations"][0]["topic_id"] == "yard"


def test_what_was_handed_over_can_be_asked_for_before_it_is_published(
    locked: tuple[Client, dict[str, str], Store],
) -> None:
    client, tokens, _ = locked
    fact = {"title": "Lighthouse", "topic_key": "light", "fields": [{"name": "colour", "value": "red"}]}
    asked = {"query": "What colour is the lighthouse?", "pending": True}

    async def ask(tools: Tools) -> list[CallToolResult]:
        await tools.call_tool("memory_ingest", fact)
        return [await tools.call_tool("memory_query", {**asked, "pending": marked}) for marked in (True, False)]

    response, published = (document(result) for result in call(over_http(client, tokens["ines"]), ask))
    [light] = [each for each in response["candidates"] if each["title"] == "Lighthouse"]
    assert (light["state"], light["pending"][0]["fields"][0]["value"]) == ("pending", "red")
    assert "Lighthouse" not in [each["title"] for each in published["candidates"]]


def test_a_core_block_is_handed_over_like_an_observation(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked
    block = {"type": "core_block", "label": "persona", "content": "Ines sails.", "authority": 5}

    async def hand_over(tools: Tools) -> list[CallToolResult]:
        return [
            await tools.call_tool("memory_ingest", {"memory": block}),
            await tools.call_tool("memory_ingest", {"memory": block, "title": "Persona"}),
        ]

    stored, refused = call(over_http(client, tokens["ines"]), hand_over)
    assert len(document(stored)["observation_ids"]) == 1
    assert refused.is_error
    assert "$.memory stands beside title" in text(refused)


def test_objects_and_details_are_handed_over_and_wrong_ones_refused(
    locked: tuple[Client, dict[str, str], Store],
) -> None:
    client, tokens, _ = locked
    given: list[dict[str, Any]] = [
        {"memory": {"type": "session_state", "session_id": "s1", "current_goal": "Sail", "working_set": ["chart"]}},
        {"memory": {"type": "resource", "uri": "boat:/", "title": "Boat", "kind": "note", "content": "Blue."}},
        {"text": "It failed.", "kind": "tool_result", "details": {"tool": "pytest", "status": "error", "path": "a.py"}},
        {"memory": {"type": "session_state", "session_id": "s1", "status": "lost"}},
        {"memory": {"type": "poem"}},
    ]

    async def hand_over(tools: Tools) -> list[CallToolResult]:
        listed = await tools.call_tool("memory_resources", {})
        return [listed, *[await tools.call_tool("memory_ingest", each) for each in given]]

    listed, *stored = call(over_http(client, tokens["ines"]), hand_over)
    assert document(listed)["resources"] == []
    assert [each.is_error for each in stored] == [False, False, False, True, True]


def test_evidence_is_filtered_and_a_budget_excludes_filters(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked
    words = "The mast test of Ines"
    details = {"tool": "pytest", "path": "mast.py"}
    given = [
        {"text": f"{words} {status}.", "kind": "tool_result", "details": details | {"status": status}}
        for status in ("ok", "error")
    ]
    asked = {"query": words, "pending": True, "tool": "pytest", "path": "mast.py", "evidence_kinds": ["tool_result"]}

    async def ask(tools: Tools) -> list[CallToolResult]:
        for each in given:
            await tools.call_tool("memory_ingest", each)
        filtered = await tools.call_tool("memory_query", asked | {"status": "error"})
        return [filtered, await tools.call_tool("memory_query", asked | {"status": "error", "budget": 60})]

    filtered, refused = call(over_http(client, tokens["ines"]), ask)
    assert [each["text"] for each in document(filtered)["evidence"]] == [f"{words} error."]
    assert refused.is_error
    assert "evidence_kinds, tool, status, path, pending: found beside budget" in said(refused)


def test_another_content_of_an_id_is_refused(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked
    said_first = {"text": "The quay is dry.", "observation_id": "quay"}

    async def hand_over(tools: Tools) -> list[CallToolResult]:
        given = [said_first, said_first | {"text": "The quay is wet."}, said_first]
        return [await tools.call_tool("memory_ingest", arguments) for arguments in given]

    first, other, again = call(over_http(client, tokens["ines"]), hand_over)
    assert document(first)["observation_ids"] == document(again)["observation_ids"] == ["quay"]
    assert "was accepted with other content" in said(other)


def test_a_foreign_key_sees_nothing(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked

    async def pry(tools: Tools) -> list[CallToolResult]:
        return [
            await tools.call_tool("memory_query", {"query": "the ferry yard and its long bench"}),
            await tools.call_tool("memory_query", {"query": "the ferry yard", "scope": "user:a"}),
            *[await tools.call_tool(name, {"topic_id": "yard"}) for name in ("memory_topic", "memory_history")],
            await tools.call_tool("memory_ingest", {"text": "I was here.", "scope": "user:a"}),
            await tools.call_tool("memory_ingest", {"text": "I was here.", "topic_id": "yard"}),
        ]

    results = call(over_http(client, tokens["foreign"]), pry)
    assert {each["topic_id"] for each in document(results[0])["candidates"]} == {"crm/42"}
    assert document(results[1])["candidates"] == document(results[1])["evidence"] == []
    assert [result.is_error for result in results[2:]] == [True, True, True, True]
    response = "".join(text(result) for result in results)
    assert not [word for word in ("Ferry Yard", "larch", "Ines", "Marta") if word in response]


def test_errors_are_the_sentences_of_problem_documents(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked
    wrong = [
        ("memory_topic", {"topic_id": "nobody"}),
        ("memory_query", {"query": ""}),
        ("memory_query", {"query": "x", "scope": "planet:earth"}),
        ("memory_query", {"query": "x", "scopes": "user:a"}),
        ("memory_query", {"query": "x", "as_of": "yesterday"}),
        ("memory_ingest", {"title": "Only a title", "scope": "user"}),
        ("memory_ingest", {"scope": "user:a"}),
        ("memory_ingest", {"title": "T", "fields": [{"name": "n", "value": "three", "field_type": "int"}]}),
    ]

    async def fail(tools: Tools) -> list[CallToolResult]:
        return [await tools.call_tool(name, arguments) for name, arguments in wrong]

    response = [said(result) for result in call(over_http(client, tokens["ines"]), fail)]
    same = client.get("/v1/topics/nobody", X_API_Key=tokens["ines"]).document["detail"]
    assert response[0] == same
    for sentence, part in zip(
        response[1:],
        [
            "query: String should have at least 1 character",
            "'planet:earth' is not a scope: expected TYPE:ID with a type of global, user",
            "memory_query takes no argument 'scopes'; expected some of query, scope, top_k",
            "expected an ISO 8601 time such as 2026-04-22T12:00:00Z",
            "scope: 'user' is not a scope: expected TYPE:ID",
            "found nothing to remember, expected text, a title",
            '$.fields[0].value is a string ("three"), but its field_type int expects a JSON integer',
        ],
        strict=True,
    ):
        assert part in sentence
    assert not [sentence for sentence in response if "Traceback" in sentence or "pydantic" in sentence]


def test_who_may_read_only_may_not_write(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, store = locked

    async def write(tools: Tools) -> CallToolResult:
        return await tools.call_tool("memory_ingest", {"text": "I was here."})

    waiting = len(list(store.home.inbox.glob("*.jsonl")))
    assert "found a key for read, expected one for write" in said(call(over_http(client, tokens["guest"]), write))
    assert len(list(store.home.inbox.glob("*.jsonl"))) == waiting


def test_what_is_handed_over_is_in_the_inbox_with_ids_that_follow_from_it(
    locked: tuple[Client, dict[str, str], Store],
) -> None:
    client, tokens, store = locked
    deal = {
        "title": "Acme renewal", "topic_key": "acme", "observed_at": "2026-04-22T12:00:00Z",
        "fields": [{"name": "owner", "value": "Aya", "ref_topic_id": None}],
        "edges": [{"kind": "mentions", "to_topic_key": "b"}],
    }  # fmt: skip

    async def hand_over(tools: Tools) -> list[CallToolResult]:
        given = [deal, deal, {"text": '{"a": 1}'}]
        return [await tools.call_tool("memory_ingest", arguments) for arguments in given]

    first, second, third = (document(r) for r in call(over_http(client, tokens["ines"]), hand_over))
    assert first["observation_ids"] == second["observation_ids"] != third["observation_ids"]
    assert first["topic_ids"] == second["topic_ids"] != [None]
    _, row = (json.loads(line) for line in (store.home.inbox / first["file"]).read_text().splitlines())
    assert (row["provenance"], row["scope"]) == ("mcp", {"type": "user", "id": "a"})
    assert row["fields"] == [{"name": "owner", "value": "Aya", "ref_topic_id": None}]
    _, row = (json.loads(line) for line in (store.home.inbox / third["file"]).read_text().splitlines())
    assert row["text"] == '{"a": 1}'


def test_the_middleware_of_all_routes_guards_the_tools(locked: tuple[Client, dict[str, str], Store]) -> None:
    client, tokens, _ = locked
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepts = {"Accept": "application/json, text/event-stream", "X_API_Key": tokens["owner"]}
    assert client.post("/mcp", message, **accepts).status == 200
    assert client.post("/mcp", message, **accepts, Origin=client.url).status == 200
    assert client.post("/mcp", message, Accept=accepts["Accept"]).status == 401
    foreign = client.post("/mcp", message, **accepts, Origin="https://evil.example")
    assert (foreign.status, foreign.document["type"]) == (403, "urn:memstate:problem:foreign-origin")
    assert client.post("/mcp", b"[" * 500, **accepts).status == 400
    assert client.post("/mcp", b" " * (2 << 20), **accepts).status == 413
    assert client.get("/mcp", **accepts).status == 405
    response = client.get("/metrics", X_API_Key=tokens["owner"]).content.decode()
    assert 'memstate_http_requests_total{method="POST",route="/mcp",status="200"}' in response


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


def test_over_stdio_only_the_scopes_that_were_named_are_seen(locked: tuple[Client, dict[str, str], Store]) -> None:
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


# The SDK


def test_the_sdk_starts_with_its_span_middleware_and_nothing_else() -> None:
    """`memstate_core.serve.mcp.sdk` removes what a bare server starts with; look there when this fails."""
    assert [type(each).__name__ for each in Server("bare").middleware] == ["OpenTelemetryMiddleware"]
    server: MCPServer[None] = MCPServer("whole")
    before = [type(each).__name__ for each in server.middleware]
    remove_sdk_spans(server)
    after = [type(each).__name__ for each in server.middleware]
    assert before == ["OpenTelemetryMiddleware", *after]
    assert after, "checks of the SDK's own stay"
