"""Sessions of Codex: JSON Lines, one event a line, as stored below `~/.codex/sessions`.

Events have no ids, so a message's id is `codex/<session>/<hash>` of the conversation up to it
(`memstate_core.ingest.formats.shared.message_ids`): a continued session keeps the ids of its beginning. An
`event_msg` repeats a `response_item` and is left out, as are thoughts. Older files have the bare items without times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.json_documents import Document, Odd, document_reader
from memstate_core.ingest.formats.shared.message import (
    CALL,
    KINDS,
    RESULT,
    SYSTEM,
    USER,
    Turn,
    call_details,
    call_text,
    moment,
    plain_text,
    text_or_none,
)
from memstate_core.ingest.formats.shared.message_ids import Chain
from memstate_core.ingest.notes import Notes

_EVENTS = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
}
_LONGEST_STATUS = 100
_RESULTS = {"function_call_output", "custom_tool_call_output"}
_WRITTEN_BY_CODEX = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
)


def _knows(document: Document) -> bool:
    if "payload" in document:
        return document.get("type") in _EVENTS
    return {"id", "timestamp", "instructions"} <= document.keys() or document.get("record_type") == "state"


class _Session:
    """The events of one file."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._chain: Chain | None = None
        self._time: str | None = None
        self._tools: dict[str, str] = {}

    def __call__(self, event: Document) -> Iterator[Turn | Odd]:
        self._time = moment(event.get("timestamp")) or self._time
        payload = event.get("payload", event)
        if not isinstance(payload, dict):
            yield Odd(event, "$.payload is not an object, expected what the event holds")
        elif event.get("type") == "session_meta" or "instructions" in event:
            self._chain = self._chain or Chain("codex", text_or_none(payload.get("id")) or "unnamed")
        elif event.get("type") in _EVENTS - {"response_item", "compacted"} or "record_type" in event:
            self._notes.left_out(str(event.get("type") or "record"))
        else:
            yield from self._turns_of(payload)

    def _turns_of(self, item: dict[str, Any]) -> Iterator[Turn]:
        kind, actor, text = _said(item)
        if not text.strip():
            self._notes.left_out(str(item.get("type") or "message without text"))
            return
        self._chain = self._chain or Chain("codex", "unnamed")
        details = {"details": _details(item, self._tools)} if kind in (CALL, RESULT) else {}
        yield self._chain.add(kind, text, actor=actor, observed_at=self._time, **details)


def _said(item: dict[str, Any]) -> tuple[str, str | None, str]:
    """Kind, actor and text of an item; no text for thoughts and unknown types."""
    found = item.get("type")
    if found in _CALLS:
        name = item.get("name") or str(found).removesuffix("_call")
        return CALL, "assistant", call_text(name, item.get(_CALLS[str(found)]))
    if found in _RESULTS:
        return RESULT, "tool", plain_text(item.get("output"))
    if found == "message":
        role, text = str(item.get("role")), plain_text(item.get("content"))
        kind = KINDS.get(role, SYSTEM)
        return SYSTEM if kind == USER and text.lstrip().startswith(_WRITTEN_BY_CODEX) else kind, role, text
    message = item.get("message")
    return SYSTEM, "codex", message if isinstance(message, str) else ""


def _details(item: dict[str, Any], tools: dict[str, str]) -> dict[str, Any]:
    """The tool and arguments of a call; of a result what it says about its end."""
    found = str(item.get("type"))
    if found in _CALLS:
        said = call_details(item.get("name") or found.removesuffix("_call"), item.get(_CALLS[found]))
        if isinstance(call := item.get("call_id"), str) and "tool" in said:
            tools[call] = said["tool"]
        return said
    status = text_or_none(item.get("status"))
    known = None if status is None or len(status) > _LONGEST_STATUS else status
    return {"tool": tools.get(str(item.get("call_id"))), "status": known}


READER = document_reader(
    "Codex sessions: JSON Lines whose events have `timestamp`, `type` and `payload`", r"\.jsonl$", _knows, _Session
)
