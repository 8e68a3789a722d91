"""The tools over HTTP: what they answer, and who sees what."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client as Tools
from mcp_types import CallToolResult

from tests.core.serve.mcp.calls import TOOLS, Locked, call, document, over_http, said, text

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_say_what_they_are_for(locked: Locked, mode: str) -> None:
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


def test_questions_topics_and_histories_are_answered(locked: Locked) -> None:
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


def test_an_answer_can_be_one_text_within_a_budget(locked: Locked) -> None:
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


def test_evidence_is_filtered_and_a_budget_excludes_filters(locked: Locked) -> None:
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


def test_a_foreign_key_sees_nothing(locked: Locked) -> None:
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


def test_errors_are_the_sentences_of_problem_documents(locked: Locked) -> None:
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
    found = same.removesuffix("GET /v1/topics, or topics() of the Python client, lists every id.")
    assert found != same
    assert response[0] == f"{found}memory_query finds topics, with the id of each."
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


def test_the_middleware_of_all_routes_guards_the_tools(locked: Locked) -> None:
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
