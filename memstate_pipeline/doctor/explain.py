"""`memstate doctor --topic`: what governs a topic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from memstate_core.model.text import iso
from memstate_core.run.store import Store


def explain(store: Store, topic_id: str, now: datetime | None) -> dict[str, Any]:
    """The policy that governs a served topic, and what happens to it next without new evidence or accesses.

    Args:
        store: the store; its settings give the policy.
        topic_id: a topic, an alias, a tombstone or a `topic_key`.
        now: the time to explain; None for the machine's clock. A time before the snapshot's counts as the snapshot's.

    Returns:
        What `memstate_core.policy.explain.explain_topic` gives, and `now` and `snapshot`.

    Raises:
        StoreNotFound: nothing was published yet.
        TopicNotFound: nothing has this id or key.
        TopicAmbiguous: several topics have this key.
    """
    import polars as pl

    from memstate_core.forget.forecast import forecast
    from memstate_core.policy.explain import explain_topic
    from memstate_core.run.served_state import read_served
    from memstate_core.run.served_topics import served_topic

    shards = read_served(store)
    shard, living = served_topic(shards, topic_id)
    served = shards[shard]
    at = max(now or datetime.now(UTC), served.snapshot.manifest.now)
    row = forecast(served, at, store.settings.policy).filter(pl.col("id") == living)
    facts = explain_topic(row, store.settings.policy)
    return {**facts, "now": iso(at), "snapshot": served.snapshot.name}
