"""One message of a conversation as a row: the observation that any dump could hold.

The identity of a message is its id and its words. Who is named how, which session and turn it belongs to
and when it was said may be told otherwise by a newer export (a user renamed, a branch left), which is no
conflict: the ledger keeps what it was told first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.ingest.validation.values import canonical
from memstate_core.model.text import iso

Turn = dict[str, Any]
"""The keys of an observation: observation_id, kind, text and what else is known."""

USER, ASSISTANT, SYSTEM = "user_message", "assistant_message", "system_event"
CALL, RESULT = "tool_call", "tool_result"
KINDS = {
    **{"user": USER, "human": USER, "assistant": ASSISTANT, "gpt": ASSISTANT, "chatgpt": ASSISTANT, "bing": ASSISTANT},
    **{"bard": ASSISTANT, "model": ASSISTANT, "system": SYSTEM, "developer": SYSTEM},
    **{"tool": RESULT, "function": RESULT, "observation": RESULT, "function_response": RESULT, "function_call": CALL},
}
"""The kind of a message by the role that its writer gives it."""

_MILLISECONDS_FROM = 100_000_000_000
"""Epoch times from here on count milliseconds: seconds would lie beyond the year 5000."""


def turn_row(line: int, member: str | None, turn: Turn, words: str | None = None) -> RawRow:
    """A message as a row.

    Args:
        line: its number in the file or member: of the line, the element or the conversation.
        member: the member of an archive that it came from.
        turn: the observation.
        words: what was said, where `text` renders it with names that may change.
    """
    raw = canonical(turn)
    said = canonical([turn["observation_id"], turn["text"] if words is None else words])
    return RawRow(line, raw, len(raw), None, member, sha256(said).hexdigest())


def refused_row(line: int, member: str | None, raw: bytes, reason: Reason, detail: str) -> RawRow:
    """Something that cannot be read, with the reason."""
    return RawRow(line, raw, len(raw), None, member, None, reason, shortened(detail))


def moment(value: object) -> str | None:
    """A time as ISO 8601: epoch seconds or milliseconds are spelled out, all else stays for `validate` to judge."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return canonical(value).decode()
    try:
        return iso(datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value, UTC))
    except (ValueError, OverflowError, OSError):
        return str(value)


def plain_text(content: object) -> str:
    """The text of a message: a string, or a list of parts of which those without text are named by their type."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _part(content)
    if not isinstance(content, list):
        return ""
    return "\n".join(text for text in map(plain_text, content) if text.strip())


def _part(part: dict[str, Any]) -> str:
    text = next((part[key] for key in ("text", "content", "refusal") if isinstance(part.get(key), str | list)), None)
    if text is not None:
        return plain_text(text)
    kind = part.get("type") or part.get("content_type")
    return f"[{kind}]" if isinstance(kind, str) else ""


def call_text(name: object, arguments: object) -> str:
    """The call of a tool as text: `name(arguments)`."""
    given = arguments if isinstance(arguments, str) else canonical(arguments).decode()
    return f"{name if isinstance(name, str) else 'tool'}({given})"


def text_or_none(value: object) -> str | None:
    """The value if it is a text that says something."""
    return value if isinstance(value, str) and value.strip() else None
