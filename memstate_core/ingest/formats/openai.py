"""Chat completions of OpenAI as JSON Lines: fine-tuning data, requests, and answers with `choices`.

The id of a message is `openai/<hash>` of the conversation up to it
(`memstate_core.ingest.formats.shared.message_ids`), so the history that each request of a log repeats is recognised.
Choices beyond the first are branches. `created`, if a line has it, is the time of its messages; without it they count
as observed when first imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.json_documents import Document, Odd, Turns, document_reader
from memstate_core.ingest.formats.shared.message import (
    CALL,
    KINDS,
    SYSTEM,
    Turn,
    call_details,
    call_text,
    moment,
    plain_text,
    text_or_none,
)
from memstate_core.ingest.formats.shared.message_ids import Chain
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.values import canonical

_SHOWN = 40
_WRAPPERS = ("request", "response", "body")


def _knows(document: Document) -> bool:
    asked, choices = _asked(document), _choices(document)
    return any(isinstance(message, dict) and "role" in message for message in asked[:1]) or any(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices[:1]
    )


def _begin(notes: Notes) -> Turns:
    return lambda document: _turns(document, notes)


def _found(document: Document, key: str, depth: int = 3) -> Any:
    """The value of a key in a line, or in the request or answer that the line wraps."""
    if key in document:
        return document[key]
    inner = (document.get(wrapper) for wrapper in _WRAPPERS)
    found = (_found(item, key, depth - 1) for item in inner if isinstance(item, dict) and depth)
    return next((value for value in found if value is not None), None)


def _asked(document: Document) -> list[Any]:
    found = _found(document, "messages")
    return found if isinstance(found, list) else []


def _choices(document: Document) -> list[Any]:
    found = _found(document, "choices")
    return found if isinstance(found, list) else []


def _turns(document: Document, notes: Notes) -> Iterator[Turn | Odd]:
    asked, choices = _asked(document), _choices(document)
    if not asked and not choices:
        expected = "expected a chat completion with a list of messages in `messages` or `choices`"
        raise Rejection(Reason.WRONG_TYPE, f"found {_instead(document)}, {expected}")
    chain, time = Chain("openai"), moment(_found(document, "created"))
    for message in asked:
        yield from _turns_of(chain, message, time, notes)
    answers = [choice.get("message") if isinstance(choice, dict) else choice for choice in choices]
    forks = [chain, *(chain.fork() for _ in answers[1:])]
    for fork, answer in zip(forks, answers, strict=False):
        yield from _turns_of(fork, answer, time, notes)


def _instead(document: Document) -> str:
    """What a line has in place of messages."""
    found = {key: _found(document, key) for key in ("messages", "choices")}
    written = {key: canonical(value).decode() for key, value in found.items() if value is not None}
    shown = [f"`{key}`: {value[:_SHOWN]}" for key, value in written.items()]
    return " and ".join(shown) or "neither `messages` nor `choices`"


def _turns_of(chain: Chain, message: Any, time: str | None, notes: Notes) -> Iterator[Turn | Odd]:
    if not isinstance(message, dict):
        yield Odd(message, "a message is not an object, expected `role` and `content`")
        return
    role, text = str(message.get("role")), plain_text(message.get("content"))
    actor = text_or_none(message.get("name")) or role
    calls = list(_calls(message))
    if text.strip():
        yield chain.add(KINDS.get(role, SYSTEM), text, actor=actor, observed_at=time)
    elif not calls:
        notes.left_out("message without text")
    for call in calls:
        text, details = call_text(*call), call_details(*call)
        yield chain.add(CALL, text, actor=actor, observed_at=time, details=details)


def _calls(message: dict[str, Any]) -> Iterator[tuple[object, object]]:
    """Name and arguments of each call."""
    listed = message.get("tool_calls")
    single = message.get("function_call")
    for call in listed if isinstance(listed, list) else []:
        inner = call.get("function") if isinstance(call, dict) else None
        if isinstance(inner, dict):
            yield inner.get("name"), inner.get("arguments")
    if isinstance(single, dict):
        yield single.get("name"), single.get("arguments")


READER = document_reader(
    "OpenAI chat completions: JSON Lines with `messages` of `role` and `content`, or with `choices`",
    r"\.jsonl?$",
    _knows,
    _begin,
)
