"""The cache of language models' answers: no request is sent twice.

The key is SHA-256 over the model's name, the messages, the schema and the request's limits; the endpoint's address
and API key are not part of it. Malformed answers are cached too, since the same request would cost the same and
most likely return the same. The file itself is the business of `memstate_core.embed.cache_file`.

Invariant: an answer is what the model returned for the key. SQLite does not notice changed bytes, so an entry has the
CRC-32 of its key and reply, and one that differs counts as absent. Entries of the first version have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

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


class _Entry(Struct, frozen=True, omit_defaults=True):
    text: str
    truncated: bool
    tokens: int
    crc32: int | None = None


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
            entry = msgjson.decode(rows[0][0], type=_Entry) if rows else None
        except (MsgspecError, TypeError):
            return None
        if entry is None:
            return None
        reply = Reply(entry.text, entry.truncated, entry.tokens)
        return reply if entry.crc32 in (None, _checksum(key, reply)) else None

    def put(self, key: str, reply: Reply) -> None:
        """Caches an answer."""
        entry = _Entry(reply.text, reply.truncated, reply.tokens, _checksum(key, reply))
        self._file.insert("INSERT OR REPLACE INTO answers VALUES (?, ?)", [(key, msgjson.encode(entry))])

    def close(self) -> None:
        """Closes the connections of all threads."""
        self._file.close()


def _checksum(key: str, reply: Reply) -> int:
    return crc32(msgjson.encode(reply), crc32(key.encode()))
