"""ShareGPT: conversations as JSON or JSON Lines, each a list of `{from, value}`.

The id of a message is a hash of the conversation up to it (`memstate_core.ingest.formats.shared.message_ids`), below
the conversation's id if it has one: `sharegpt/<conversation>/<hash>`. There are no times: a message counts as
observed when it was first imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.json_documents import Document, Odd, Turns, document_reader
from memstate_core.ingest.formats.shared.message import KINDS, SYSTEM, Turn, plain_text
from memstate_core.ingest.formats.shared.message_ids import Chain
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.reasons import Reason, Rejection

_LISTS = ("conversations", "conversation", "items")


def _knows(document: Document) -> bool:
    messages = _messages(document)
    return bool(messages) and isinstance(messages[0], dict) and {"from", "value"} & messages[0].keys() != set()


def _begin(notes: Notes) -> Turns:
    return lambda document: _turns(document, notes)


def _messages(document: Document) -> list[Any]:
    return next((document[key] for key in _LISTS if isinstance(document.get(key), list)), [])


def _turns(document: Document, notes: Notes) -> Iterator[Turn | Odd]:
    if not any(isinstance(document.get(key), list) for key in _LISTS):
        raise Rejection(Reason.WRONG_TYPE, "$.conversations is not an array, expected the messages of a conversation")
    named = document.get("id")
    chain = Chain("sharegpt", str(named) if isinstance(named, str | int) and str(named).strip() else None)
    system = document.get("system")
    first = [{"from": "system", "value": system}] if isinstance(system, str) else []
    for at, message in enumerate([*first, *_messages(document)]):
        if not isinstance(message, dict):
            yield Odd(message, f"message {at} is not an object, expected `from` and `value`")
            continue
        role, text = str(message.get("from")), plain_text(message.get("value"))
        if text.strip():
            yield chain.add(KINDS.get(role, SYSTEM), text, actor=role)
        else:
            notes.left_out("message without text")


READER = document_reader(
    "ShareGPT: JSON or JSON Lines whose conversations have `conversations` or `items` with `from` and `value`",
    r"\.jsonl?$",
    _knows,
    _begin,
)
