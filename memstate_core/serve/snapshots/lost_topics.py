"""Topics that the served snapshots lost in an erasure, so that nothing is recorded of them any more."""

from __future__ import annotations

from collections.abc import Collection

from memstate_core.model.errors import MemstateError
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.state.erasure_mark import erasure_mark
from memstate_core.state.graph import TOPIC
from memstate_core.state.home import Home


class LostTopics:
    """Asks the served snapshots once after each erasure.

    Args:
        serving: the served snapshots.
        home: the home.
    """

    def __init__(self, serving: Serving, home: Home) -> None:
        self._serving, self._home = serving, home
        self._seen = erasure_mark(home)

    def among(self, topic_ids: Collection[str], scopes: Collection[str] | None = None) -> frozenset[str]:
        """Those of some topics that are no longer served; none where no erasure was since the last call.

        Where nothing can be served after an erasure, that is all of them.

        Args:
            topic_ids: the topics.
            scopes: those that have them; None for any.
        """
        mark = erasure_mark(self._home)
        if mark == self._seen:
            return frozenset()
        asked = frozenset(topic_ids)
        try:
            lost = asked - self._serving.read(lambda each: _served(each, asked), scopes) if asked else asked
        except MemstateError:
            return asked
        self._seen = mark
        return lost


def _served(generation: Generation, topic_ids: frozenset[str]) -> frozenset[str]:
    found = (
        reader.graph.read(TOPIC, ["id"], where="r.id IN $ids", ids=sorted(topic_ids)) for reader in generation.readers
    )
    return frozenset(topic for rows in found for topic in rows["id"])
