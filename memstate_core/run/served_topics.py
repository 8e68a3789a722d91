"""The topic that a caller names, by an id or by a `topic_key`, in the served state of all shards."""

from __future__ import annotations

from collections.abc import Mapping

from memstate_core.model.errors import TopicAmbiguous, TopicNotFound
from memstate_core.run.served_state import Served


def served_topic(shards: Mapping[str, Served], name: str) -> tuple[str, str]:
    """The shard and the id of the living topic that an id resolves to, else of the only one that a key names.

    Args:
        shards: the served state by shard.
        name: an id, an alias of one, a topic that was merged away, or a `topic_key`.

    Raises:
        TopicNotFound: nothing has this id or key.
        TopicAmbiguous: several topics have this key.
    """
    for shard, served in shards.items():
        if (living := served.living(name)) is not None:
            return shard, living
    found = sorted(
        (scope, id, title, at) for at, each in shards.items() for id, scope, title in each.keyed(name).rows()
    )
    snapshots = ", ".join(served.snapshot.name for served in shards.values())
    if not found:
        raise TopicNotFound(name, snapshots)
    if len(found) > 1:
        raise TopicAmbiguous(name, snapshots, [(title, each, scope) for scope, each, title, _ in found])
    ((_, topic_id, _, shard),) = found
    return shard, topic_id
