"""The cache of language models' answers: no request is sent twice.

The key is SHA-256 over the model's name, the messages, the schema and the request's limits; the endpoint's address
and API key are not part of it. Malformed answers are cached too, since the same request would cost the same and
most likely return the same. The file itself is the business of `memstate_core.embed.cache_file`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.embed.cache_file import CacheFile
from memstate_core.llm.prompts import Message
from memstate_core.llm.schema import Shape

_TABLE = "CREATE TABLE IF NOT EXISTS answers(key TEXT PRIMARY KEY, reply BLOB) WITHOUT ROWID"


class Reply(Struct, frozen=True):
    """An answer of a language model.

    Attributes:
        text: the raw text.
        truncated: whether it ended at the limit of tokens.
        tokens: tokens of request and answer together; estimated if the server does not report them.
    """

    text: str
    truncated: bool
    tokens: int


def request_key(model: str, messages: Sequence[Message], shape: Shape, limits: tuple[float, int]) -> str:
    """The SHA-256 of a request, 64 hex digits; `limits` are the temperature and the most tokens of an answer."""
    parts = [model, [[message["role"], message["content"]] for message in messages], shape, limits]
    return hashlib.sha256(msgjson.encode(parts, order="sorted")).hexdigest()


class AnswerCache:
    """The cached answers of a store. Threads may share it; close it after use."""

    def __init__(self, path: Path) -> None:
        self._file = CacheFile(path, _TABLE)

    def get(self, key: str) -> Reply | None:
        """The cached answer to a request, or None; an entry that cannot be decoded counts as absent."""
        rows = self._file.select("SELECT reply FROM answers WHERE key = ?", (key,))
        try:
            return msgjson.decode(rows[0][0], type=Reply) if rows else None
        except (MsgspecError, TypeError):
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Caches an answer."""
        self._file.insert("INSERT OR REPLACE INTO answers VALUES (?, ?)", [(key, msgjson.encode(reply))])

    def close(self) -> None:
        """Closes the connections of all threads."""
        self._file.close()
