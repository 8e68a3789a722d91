"""Ids for messages of formats without ids: a hash of the message and of all messages before it.

So a continued conversation keeps the ids of its beginning, in any file and position, and the history that every
request of a log repeats is recognised.
"""

from __future__ import annotations

from copy import copy
from hashlib import sha256

from memstate_core.ingest.formats.shared.message import SYSTEM, Turn
from memstate_core.ingest.validation.values import canonical

_DIGITS = 32


class Chain:
    """A conversation to which messages are added.

    Its session has its id. Without one, it has the id of its first message that is not an instruction; the
    instructions before that message, which many conversations share, then belong to no session.
    """

    def __init__(self, format: str, conversation: str | None = None) -> None:
        self._format = format
        self._inside = format if conversation is None else f"{format}/{conversation}"
        self._session = None if conversation is None else self._inside
        self._link, self._turns = self._next(conversation, ""), 0
        self._branch: str | None = None
        self._forked = False

    def add(self, kind: str, text: str, **more: object) -> Turn:
        """The next message, with its id and its position."""
        self._link = self._next(self._link, kind, text)
        if self._session is None and kind != SYSTEM:
            self._session = f"{self._format}/{self._link}"
        elif self._forked and self._session is not None:
            self._branch, self._forked = self._link, False
            self._session += f"#branch-{self._link}"
        conversation = None if self._session is None else self._session.partition("/")[2].partition("#branch-")[0]
        self._turns += 1
        return {
            "observation_id": f"{self._inside}/{self._link}",
            "session_id": self._session,
            "turn": self._turns - 1,
            "source_uri": self._format if conversation is None else f"{self._format}:{conversation}",
            "kind": kind,
            "text": text,
            "branch": self._branch,
            **more,
        }

    def fork(self) -> Chain:
        """A copy of the conversation; messages added to it form a branch, named after its first message."""
        twin: Chain = copy(self)
        twin._forked = True
        return twin

    def _next(self, *parts: object) -> str:
        return sha256(canonical([self._format, *parts])).hexdigest()[:_DIGITS]
