"""Answers of language models, kept under the hash of what was asked, so that nothing is asked twice.

The key is SHA-256 over the model's name, the instructions, the schema, the content and the request's limits; the
address of the endpoint and its key are not part of it. An answer is one row, written in one transaction: a kill
at any moment leaves it whole or absent. Answers that turned out malformed are kept too, since asking the same
again costs the same and gives the same.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.llm.prompts import Message
from memstate_core.llm.schema import Shape


class Reply(Struct, frozen=True):
    """What the model answered.

    Attributes:
        text: the raw text of the answer.
        truncated: whether it broke off at the limit of tokens.
        tokens: tokens of request and answer together; an estimate where the server does not say.
    """

    text: str
    truncated: bool
    tokens: int


def request_key(model: str, messages: Sequence[Message], shape: Shape, limits: tuple[float, int]) -> str:
    """What a request is known by: SHA-256, 64 hex digits. `limits` are temperature and tokens of an answer."""
    said = [model, [[message["role"], message["content"]] for message in messages], shape, limits]
    return hashlib.sha256(msgjson.encode(said, order="sorted")).hexdigest()


class Answers:
    """The kept answers of a store. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> Reply | None:
        """The kept answer to a request, if there is one."""
        with self._open() as database:
            row = database.execute("SELECT reply FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else msgjson.decode(row[0], type=Reply)

    def put(self, key: str, reply: Reply) -> None:
        """Keeps an answer."""
        with self._open() as database, database:
            database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, msgjson.encode(reply)))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=60)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE IF NOT EXISTS answers(key TEXT PRIMARY KEY, reply BLOB) WITHOUT ROWID")
            yield database
