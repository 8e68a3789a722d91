"""Sessions of Claude Code: JSON Lines, one event a line, as stored below `~/.claude/projects`.

The session is `claude-code/<sessionId>`, that of a subagent with its own context
`claude-code/<sessionId>#sidechain-<agent>`. The observation id is `claude-code/<uuid>`, since a resumed
session repeats its events under another session id; further blocks of an event add their number. Turns
are numbered within a session, in the order of the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.formats.shared.content_blocks import said_in
from memstate_core.ingest.formats.shared.json_documents import Document, Odd, document_reader
from memstate_core.ingest.formats.shared.message import KINDS, SYSTEM, Turn, moment, text_or_none
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.reasons import Reason, Rejection

_EVENTS = {"user", "assistant", "system"}
_MARKS = {"sessionId", "leafUuid", "snapshot"}


def _knows(document: Document) -> bool:
    return isinstance(document.get("type"), str) and bool(_MARKS & document.keys())


class _Session:
    """The events of one file, with the number of turns and the last time of each session."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._turns: Counter[str] = Counter()
        self._time: str | None = None
        self._tools: dict[str, str] = {}

    def __call__(self, event: Document) -> Iterator[Turn | Odd]:
        if not isinstance(event.get("type"), str):
            raise Rejection(Reason.WRONG_TYPE, "found no `type`, expected an event of Claude Code")
        self._time = moment(event.get("timestamp")) or self._time
        left_out = _left_out(event)
        if left_out:
            self._notes.left_out(left_out)
            return
        uuid = text_or_none(event.get("uuid"))
        if uuid is None:
            raise Rejection(Reason.WRONG_TYPE, "$.uuid is not text, expected the id of an event")
        yield from self._turns_of(event, uuid)

    def _turns_of(self, event: Document, uuid: str) -> Iterator[Turn]:
        session = _session(event)
        for at, said in enumerate(_said(event, self._notes, self._tools)):
            self._turns[session] += 1
            ids = {"observation_id": f"claude-code/{uuid}" + f"/{at}" * bool(at), "session_id": session}
            where = {"turn": self._turns[session] - 1, "observed_at": self._time, "cwd": _text(event, "cwd")}
            yield {"actor": event["type"], **said, **ids, **where, "source_uri": _uri(event)}


def _left_out(event: Document) -> str | None:
    """The name of an event that is not part of the conversation."""
    if event["type"] not in _EVENTS:
        return str(event["type"])
    return "meta message" if event.get("isMeta") is True and event["type"] != "system" else None


def _said(event: Document, notes: Notes, tools: dict[str, str]) -> list[Turn]:
    kind = KINDS.get(event["type"], SYSTEM)
    if kind == SYSTEM:
        return said_in(event.get("content"), kind, notes)
    message: Any = event.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    return said_in(content, SYSTEM if event.get("isCompactSummary") is True else kind, notes, tools)


def _session(event: Document) -> str:
    session = f"claude-code/{_text(event, 'sessionId') or 'unnamed'}"
    if event.get("isSidechain") is not True:
        return session
    return f"{session}#sidechain-{_text(event, 'agentId') or 'unnamed'}"


def _uri(event: Document) -> str:
    return f"claude-code:{_text(event, 'sessionId') or 'unnamed'}"


def _text(event: Document, key: str) -> str | None:
    return text_or_none(event.get(key))


READER = document_reader(
    "Claude Code sessions: JSON Lines whose events have `type` and `sessionId`", r"\.jsonl$", _knows, _Session
)
