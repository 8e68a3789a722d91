"""The export of ChatGPT: a zip with `conversations.json`, or that file, or one conversation.

Each conversation is a tree of messages. The path to `current_node` is the session `chatgpt/<conversation>`;
messages that were replaced by editing or regenerating are evidence too, in the session
`chatgpt/<conversation>#branch-<first message>` and with that message under `branch`. The observation id is
`chatgpt/<conversation>/<message>`; turns count messages from the root, so later messages change no number. A
message without a time has the last known one before it, else that of the conversation. Marks of citations, which
name what they cite by numbers of ChatGPT's own, are left out of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.branches import Line, Place, places
from memstate_core.ingest.formats.shared.json_documents import Cleaned, Document, Odd, Turns, document_reader
from memstate_core.ingest.formats.shared.message import (
    ASSISTANT,
    CALL,
    KINDS,
    LONGEST_NAME,
    RESULT,
    SYSTEM,
    Turn,
    moment,
    plain_text,
    text_or_none,
)
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.moments import parse_moment

_HIDDEN_TYPES = {"thoughts", "reasoning_recap", "model_editable_context", "user_editable_context"}
_CITATION = re.compile(" ?\ue200(?:cite|filecite)(?:\ue202(?:turn\\d+[a-z_]+\\d+|L\\d+(?:-L?\\d+)?))+\ue201")
"""Between characters of the private-use area; other such marks have texts that a reader sees, such as names."""


def _knows(document: Document) -> bool:
    return isinstance(document.get("mapping"), dict) and not {"text", "observation_id"} & document.keys()


def _begin(notes: Notes) -> Turns:
    return lambda document: _turns(document, notes)


def _turns(document: Document, notes: Notes) -> Iterator[Turn | Cleaned | Odd]:
    mapping = document.get("mapping")
    if not isinstance(mapping, dict):
        raise Rejection(Reason.WRONG_TYPE, "$.mapping is not an object, expected the messages of a conversation by id")
    parents = _parents(mapping)
    conversation = text_or_none(document.get("conversation_id")) or text_or_none(document.get("id"))
    conversation = conversation or next((node for node, parent in parents.items() if parent is None), "unnamed")
    line = Line(_time(document))
    shared = {"conversation": text_or_none(document.get("title")), "source_uri": f"chatgpt:{conversation}"}
    for place in places(parents, _current(document, parents, mapping)):
        yield from _placed(place, mapping[place.node], conversation, line, shared, notes)


def _parents(mapping: dict[str, Any]) -> dict[str, str | None]:
    """The parent of each message; lists of children replace a missing parent."""
    parents: dict[str, str | None] = {}
    for name, node in mapping.items():
        parent = node.get("parent") if isinstance(node, dict) else None
        parents[name] = parent if isinstance(parent, str) and parent in mapping else None
    for name, node in mapping.items():
        children = node.get("children") if isinstance(node, dict) else None
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str) and child in parents and parents[child] is None and child != name:
                parents[child] = name
    return parents


def _current(document: Document, parents: dict[str, str | None], mapping: dict[str, Any]) -> str | None:
    """The last visible message: the named one, else the newest leaf."""
    named = document.get("current_node")
    if isinstance(named, str) and named in parents:
        return named
    followed = set(parents.values())
    leaves = [name for name in parents if name not in followed]
    return max(leaves, key=lambda name: (_time(_message(mapping[name])) or "", name), default=None)


def _message(node: Any) -> dict[str, Any]:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else {}


def _time(found: dict[str, Any]) -> str | None:
    """The time at which a message or conversation was made, as written; None for none, which may be written as 0."""
    return moment(found.get("create_time") or None)


def _is_known(time: str | None) -> bool:
    try:
        return time is not None and bool(parse_moment(time))
    except (ValueError, OverflowError):
        return False


def _placed(
    place: Place, node: Any, conversation: str, line: Line, shared: Turn, notes: Notes
) -> Iterator[Turn | Cleaned | Odd]:
    turns, known = line.before(place.parent)
    time = known
    message = _message(node)
    said = None
    if message:
        time = _time(message) or known
        said = _said(message, notes)
    elif not isinstance(node, dict) or node.get("message") is not None:
        yield Odd(node, f"$.mapping[{place.node!r}] holds no message, expected an object with `message`")
    line.reached(place.node, turns + (said is not None), time if _is_known(time) else known)
    if said is not None:
        session = f"chatgpt/{conversation}"
        where = session if place.branch is None else f"{session}#branch-{place.branch}"
        name = text_or_none(message.get("id")) or place.node
        ids = {"observation_id": f"{session}/{name}", "session_id": where, "branch": place.branch}
        turn = {**shared, **said, **ids, "turn": turns, "observed_at": time}
        clean = _CITATION.sub("", said["text"])
        yield turn if clean == said["text"] else Cleaned(turn | {"text": clean}, said["text"])


def _said(message: dict[str, Any], notes: Notes) -> Turn | None:
    """The turn of a message; None for hidden messages and those without text."""
    author = message.get("author")
    author = author if isinstance(author, dict) else {}
    content, metadata = message.get("content"), message.get("metadata")
    kind = KINDS.get(str(author.get("role")), SYSTEM)
    if kind == ASSISTANT and message.get("recipient") not in (None, "all"):
        kind = CALL
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    content_type = content.get("content_type") if isinstance(content, dict) else None
    if hidden or message.get("weight") == 0 or content_type in _HIDDEN_TYPES:
        notes.left_out("hidden message" if content_type not in _HIDDEN_TYPES else str(content_type))
        return None
    text = _text(content)
    if not _CITATION.sub("", text).strip():
        notes.left_out("message without text")
        return None
    name = text_or_none(author.get("name"))
    said = {"kind": kind, "actor": name or text_or_none(author.get("role")), "text": text}
    tool = text_or_none(message.get("recipient")) if kind == CALL else name if kind == RESULT else None
    return said if tool is None else said | {"details": {"tool": tool[:LONGEST_NAME]}}


def _text(content: Any) -> str:
    if not isinstance(content, dict):
        return plain_text(content)
    parts = content.get("parts")
    keys = ("title", "name", "text", "result", "url")
    return plain_text(parts if isinstance(parts, list) else [content[key] for key in keys if content.get(key)])


READER = document_reader(
    "a ChatGPT export: a zip with conversations.json, or that file, whose conversations have `mapping`",
    r"(?:^|/)conversations(?:[-_]\d+)?\.json$",
    _knows,
    _begin,
)
