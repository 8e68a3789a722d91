"""One message of a conversation as a row: an observation like those of any dump.

A message is identified by its id and its text. A newer export may give other names, another session or turn, or
another time (a renamed user, an abandoned branch). That is not a conflict: the ledger keeps what it recorded first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.ingest.validation.values import canonical
from memstate_core.model.text import iso

Turn = dict[str, Any]
"""The keys of an observation: observation_id, kind, text and others that are known."""

USER, ASSISTANT, SYSTEM = "user_message", "assistant_message", "system_event"
CALL, RESULT = "tool_call", "tool_result"
KINDS = {
    **{"user": USER, "human": USER, "assistant": ASSISTANT, "gpt": ASSISTANT, "chatgpt": ASSISTANT, "bing": ASSISTANT},
    **{"bard": ASSISTANT, "model": ASSISTANT, "system": SYSTEM, "developer": SYSTEM},
    **{"tool": RESULT, "function": RESULT, "observation": RESULT, "function_response": RESULT, "function_call": CALL},
}
"""The kind of a message by its role."""

_PATHS = ("file_path", "path", "notebook_path")
"""Arguments by which tools name the file that they are about."""
LONGEST_NAME, _LONGEST_ARGUMENTS = 1_000, 10_000
"""Characters of a name, bytes of arguments that details hold; the text of the call has all of it."""

_MILLISECONDS_FROM = 100_000_000_000
"""Epoch times from here on count milliseconds: seconds would lie beyond the year 5000."""


def turn_row(line: int, member: str | None, turn: Turn, original: str | None = None) -> RawRow:
    """A message as a row.

    Args:
        line: its number in the file or member: of the line, the element or the conversation.
        member: the member of an archive that it came from.
        turn: the observation.
        original: the text as written, if `text` contains names that may change.
    """
    raw = canonical(turn)
    said = canonical([turn["observation_id"], turn["text"] if original is None else original])
    return RawRow(line, raw, len(raw), None, member, sha256(said).hexdigest())


def refused_row(line: int, member: str | None, raw: bytes, reason: Reason, detail: str) -> RawRow:
    """Something that cannot be read, with the reason."""
    return RawRow(line, raw, len(raw), None, member, None, reason, shortened(detail))


def moment(value: object) -> str | None:
    """A time as ISO 8601: epoch seconds or milliseconds are converted, anything else is left to `validate`."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return canonical(value).decode()
    try:
        return iso(datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value, UTC))
    except (ValueError, OverflowError, OSError):
        return str(value)


def plain_text(content: object) -> str:
    """The text of a message: a string, or a list of parts, where the type replaces parts without text."""
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


def call_details(name: object, arguments: object) -> dict[str, Any]:
    """What a call says, by which queries find it; long arguments are in its text only."""
    given = _decoded(arguments)
    found = {"tool": text_or_none(name)}
    if isinstance(given, dict):
        found["path"] = next((path for key in _PATHS if (path := text_or_none(given.get(key))) is not None), None)
    kept = {key: value for key, value in found.items() if value is not None and len(value) <= LONGEST_NAME}
    return kept | ({"arguments": given} if given and len(canonical(given)) <= _LONGEST_ARGUMENTS else {})


def _decoded(arguments: object) -> object:
    """Arguments that are written as JSON text as what they hold."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments


def text_or_none(value: object) -> str | None:
    """The value if it is a string that is not blank."""
    return value if isinstance(value, str) and value.strip() else None
