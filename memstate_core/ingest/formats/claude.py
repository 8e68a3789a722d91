"""The export of Claude.ai: a zip with `conversations.json`, or that file.

The session is `claude/<conversation>`, the observation id `claude/<conversation>/<message>`; what a message
holds beside its text (tool calls, their results, the text of attachments) adds its position in the
message. If messages name their parents, messages that were replaced by editing form a branch, as with ChatGPT.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.branches import Line, Place, places
from memstate_core.ingest.formats.shared.content_blocks import said_in
from memstate_core.ingest.formats.shared.json_documents import Document, Odd, Turns, document_reader
from memstate_core.ingest.formats.shared.message import KINDS, SYSTEM, Turn, moment, text_or_none
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.reasons import Reason, Rejection


def _knows(document: Document) -> bool:
    return isinstance(document.get("chat_messages"), list)


def _begin(notes: Notes) -> Turns:
    return lambda document: _turns(document, notes)


def _turns(document: Document, notes: Notes) -> Iterator[Turn | Odd]:
    listed = document.get("chat_messages")
    if not isinstance(listed, list):
        raise Rejection(Reason.WRONG_TYPE, "$.chat_messages is not an array, expected the messages of a conversation")
    messages: dict[str, dict[str, Any]] = {}
    for at, message in enumerate(listed):
        if not isinstance(message, dict):
            yield Odd(message, f"$.chat_messages[{at}] is not a message, expected an object")
        elif messages.setdefault(name := text_or_none(message.get("uuid")) or str(at), message) != message:
            yield Odd(message, f"$.chat_messages[{at}].uuid is that of another message ({name!r}), expected its own")
    conversation = text_or_none(document.get("uuid")) or next(iter(messages), "unnamed")
    line = Line(moment(document.get("created_at")))
    shared = {"conversation": text_or_none(document.get("name")), "source_uri": f"claude:{conversation}"}
    current = document.get("current_leaf_message_uuid")
    for place in places(_parents(messages), str(current) if current in messages else next(reversed(messages), None)):
        for turn in _placed(place, messages[place.node], line, notes):
            yield {**shared, **turn, **_ids(conversation, place, turn["observation_id"])}


def _parents(messages: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    """The parent of each message: as named, or the previous message if none names any."""
    parents = {name: message.get("parent_message_uuid") for name, message in messages.items()}
    if not any(parent in messages for parent in parents.values() if isinstance(parent, str)):
        names = list(messages)
        return dict(zip(names, [None, *names], strict=False))
    return {
        name: parent if isinstance(parent, str) and parent in messages else None for name, parent in parents.items()
    }


def _placed(place: Place, message: dict[str, Any], line: Line, notes: Notes) -> Iterator[Turn]:
    turns, time = line.before(place.parent)
    time = moment(message.get("created_at")) or time
    sender = message.get("sender")
    content = message.get("content")
    blocks = content if isinstance(content, list) and content else message.get("text")
    found = [*said_in(blocks, KINDS.get(str(sender), SYSTEM), notes), *_attached(message)]
    line.reached(place.node, turns + len(found), time)
    for at, said in enumerate(found):
        said.setdefault("actor", text_or_none(sender))
        yield {**said, "observation_id": place.node + f"/{at}" * bool(at), "turn": turns + at, "observed_at": time}


def _attached(message: dict[str, Any]) -> Iterator[Turn]:
    """The extracted text of attached files."""
    attachments = message.get("attachments")
    for file in attachments if isinstance(attachments, list) else ():
        text = text_or_none(file.get("extracted_content")) if isinstance(file, dict) else None
        if text is not None:
            kind = KINDS.get(str(message.get("sender")), SYSTEM)
            yield {"kind": kind, "text": text, "attachment": text_or_none(file.get("file_name"))}


def _ids(conversation: str, place: Place, name: str) -> Turn:
    session = f"claude/{conversation}"
    where = session if place.branch is None else f"{session}#branch-{place.branch}"
    return {"observation_id": f"{session}/{name}", "session_id": where, "branch": place.branch}


READER = document_reader(
    "a Claude.ai export: a zip with conversations.json, or that file, whose conversations have `chat_messages`",
    r"(?:^|/)conversations(?:[-_]\d+)?\.json$",
    _knows,
    _begin,
)
