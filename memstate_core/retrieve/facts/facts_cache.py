"""An LRU cache of the current facts of topics, so that a topic which many questions find is read once.

A snapshot is immutable, so entries never expire while it is open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from cachetools import LRUCache

from memstate_core.retrieve.facts.facts import Facts

CAPACITY = 1024
"""Topics whose facts are cached, a few KiB each."""

_Entry = tuple[dict[str, Any], list[dict[str, Any]]]
"""Fields and warnings of one topic."""


class FactsCache:
    """Facts by topic; thread-safe. Callers must not change what they get."""

    def __init__(self) -> None:
        self._entries: LRUCache[str, _Entry] = LRUCache(CAPACITY)
        self._lock = threading.Lock()

    def of(self, ids: list[str], read: Callable[[list[str]], Facts]) -> Facts:
        """The current facts of some topics, without histories of the topics themselves.

        Args:
            ids: the topics.
            read: reads those that are not cached.
        """
        with self._lock:
            known = {topic: self._entries[topic] for topic in ids if topic in self._entries}
        missing = [topic for topic in ids if topic not in known]
        if missing:
            found = read(missing)
            fresh = {topic: (found.fields.get(topic, {}), found.warnings.get(topic, [])) for topic in missing}
            known |= fresh
            with self._lock:
                self._entries.update(fresh)
        fields = {topic: fields for topic, (fields, _) in known.items() if fields}
        return Facts(fields, {}, {topic: warnings for topic, (_, warnings) in known.items() if warnings})

    def clear(self) -> None:
        """Drops every entry."""
        with self._lock:
            self._entries.clear()
