"""Messages made of content blocks, as Claude writes them: text, tool calls, their results, thoughts."""

from __future__ import annotations

from typing import Any

from memstate_core.ingest.formats.shared.message import (
    CALL,
    LONGEST_NAME,
    RESULT,
    Turn,
    call_details,
    call_text,
    plain_text,
    text_or_none,
)
from memstate_core.ingest.notes import Notes

_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
_THOUGHTS = {"thinking", "redacted_thinking", "token_budget"}


def said_in(content: Any, kind: str, notes: Notes, tools: dict[str, str] | None = None) -> list[Turn]:
    """The turns of one message (kind, text, and the tool's name as actor), in order.

    Consecutive text blocks are one turn; thoughts, and blocks without text, are left out.

    Args:
        content: a text, or a list of blocks.
        kind: the kind of the text.
        notes: counts what was left out.
        tools: the names of the tools called so far by the id of the call, to which these calls are added.
    """
    known = {} if tools is None else tools
    turns: list[Turn] = []
    words: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        found = block.get("type") if isinstance(block, dict) else None
        if found in _THOUGHTS:
            notes.left_out(str(found))
        elif found in _CALLS or str(found).endswith("tool_result"):
            turns += [*_words(words, kind), *_tool(block, str(found), notes, known)]
            words = []
        else:
            words.append(plain_text(block))
    turns += _words(words, kind)
    if not turns:
        notes.left_out("message without text")
    return turns


def _words(texts: list[str], kind: str) -> list[Turn]:
    text = "\n".join(text for text in texts if text.strip())
    return [{"kind": kind, "text": text}] if text else []


def _tool(block: dict[str, Any], found: str, notes: Notes, tools: dict[str, str]) -> list[Turn]:
    if found in _CALLS:
        name, given = block.get("name"), block.get("input")
        if isinstance(call := block.get("id"), str) and isinstance(name, str):
            tools[call] = name
        return [{"kind": CALL, "text": call_text(name, given), "details": call_details(name, given)}]
    text = plain_text(block.get("content"))
    if not text.strip():
        notes.left_out("tool result without text")
        return []
    tool = text_or_none(block.get("name"))
    called = tool or tools.get(str(block.get("tool_use_id")))
    details = {
        "tool": None if called is None else called[:LONGEST_NAME],
        "status": "error" if block.get("is_error") is True else "ok",
    }
    return [{"kind": RESULT, "actor": tool or "tool", "text": text, "details": details}]
