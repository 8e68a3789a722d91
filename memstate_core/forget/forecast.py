"""Forecast: the features that served topics would have at a later time without new evidence or accesses."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.forget.topic_features import TOPIC_COLUMNS, FeatureInputs, counted, features_of, governed
from memstate_core.policy.settings import Policy
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import Served
from memstate_core.state.fold.edges import edges_at
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.fold.strength import DECAY, saliences
from memstate_core.state.graph import FIELD, TOPIC, open_graph

_OWN = [name for name in TOPIC_COLUMNS if name not in ("salience", "failed_salience", *DECAY)]


def forecast(served: Served, now: datetime, policy: Policy) -> pl.DataFrame:
    """The features of every topic of a shard that is not a tombstone, sorted by id.

    Args:
        served: the served shard.
        now: the time, not before that of the snapshot.
        policy: limits and thresholds; half-lives are those of the snapshot's own policy.

    Returns:
        The columns of `memstate_core.forget.topic_features.features_of`, with `id` in place of `topic_id`, and
        `pinned_topics` (how many active topics of the scope are pinned, by rules too).
    """
    with open_graph(served.snapshot.path / GRAPH_FILE, read_only=True) as graph:
        topics = graph.read(TOPIC, [*_OWN, "failed_strength", *DECAY], "r.state <> 'merged'")
        fields = graph.read(FIELD, ["id", "topic_id", *DECAY])
        edges = edges_at(graph, now)
    fields, topics = saliences(fields, topics, now, policy)
    held = ladder_state(served.transitions).held
    known = FeatureInputs(topics, counted(served.evidence_topic, "evidence"), counted(fields, "fields"), edges, held)
    none = topics["id"].clear()
    topics = features_of(known, now, policy, new_evidence=none, accessed=none)
    pinned = (governed(topics, policy)["pinned"] & (topics["state"] == "active")).cast(pl.Int64)
    counted_pins = topics.with_columns(pinned.alias("pinned_topics")).with_columns(
        pl.sum("pinned_topics").over("scope")
    )
    return counted_pins.rename({"topic_id": "id"})
