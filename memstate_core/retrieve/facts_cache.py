"""The current facts of the topics that were named last, so that a topic which many questions find is read once.

A snapshot never changes, so what was read of it holds as long as it is open.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from memstate_core.retrieve.facts import Facts

KEPT = 1024
"""Topics whose facts are kept, a few KiB each."""


class KnownFacts:
    """Facts by topic; for several threads. Who gets them must not change them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, ids: list[str], read: Callable[[list[str]], Facts]) -> Facts:
        """The current facts of some topics, without histories of the topics themselves.

        Args:
            ids: the topics.
            read: reads those that are not known.
        """
        with self._lock:
            known = {topic: self._kept[topic] for topic in ids if topic in self._kept}
        missing = [topic for topic in ids if topic not in known]
        if missing:
            found = read(missing)
            known |= {topic: (found.fields.get(topic, {}), found.warnings.get(topic, [])) for topic in missing}
        with self._lock:
            for topic in ids:
                self._kept[topic] = known[topic]
                self._kept.move_to_end(topic)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        fields = {topic: fields for topic, (fields, _) in known.items() if fields}
        return Facts(fields, {}, {topic: warnings for topic, (_, warnings) in known.items() if warnings})

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._kept.clear()
