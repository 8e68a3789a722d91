"""What models hand over: observations and objects of memory, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client as Tools
from mcp_types import CallToolResult

from tests.core.serve.mcp.calls import Locked, call, document, over_http, said, text

pytestmark = pytest.mark.slow


def test_what_was_handed_over_can_be_asked_for_before_it_is_published(
    locked: Locked,
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


def test_a_core_block_is_handed_over_like_an_observation(locked: Locked) -> None:
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
    locked: Locked,
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


def test_another_content_of_an_id_is_refused(locked: Locked) -> None:
    client, tokens, _ = locked
    said_first = {"text": "The quay is dry.", "observation_id": "quay"}

    async def hand_over(tools: Tools) -> list[CallToolResult]:
        given = [said_first, said_first | {"text": "The quay is wet."}, said_first]
        return [await tools.call_tool("memory_ingest", arguments) for arguments in given]

    first, other, again = call(over_http(client, tokens["ines"]), hand_over)
    assert document(first)["observation_ids"] == document(again)["observation_ids"] == ["quay"]
    assert "was accepted with other content" in said(other)


def test_who_may_read_only_may_not_write(locked: Locked) -> None:
    client, tokens, store = locked

    async def write(tools: Tools) -> CallToolResult:
        return await tools.call_tool("memory_ingest", {"text": "I was here."})

    waiting = len(list(store.home.inbox.glob("*.jsonl")))
    assert "found a key for read, expected one for write" in said(call(over_http(client, tokens["guest"]), write))
    assert len(list(store.home.inbox.glob("*.jsonl"))) == waiting


def test_what_is_handed_over_is_in_the_inbox_with_ids_that_follow_from_it(
    locked: Locked,
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
