"""Merges as a nightly run of an older version recorded them, whatever today's model says about the pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.corrections import follow, served_snapshot
from memstate_core.night.publish import publish
from memstate_core.run.begin import begin_run
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, with_model
from memstate_core.state.fold.decisions import CORRECTIONS
from memstate_core.state.snapshots import load_snapshot
from tests.core.frames import filled


def merge_as_before(store: Store, pairs: Sequence[tuple[str, str]], at: datetime) -> str:
    """Merges the first topic of each pair into the second; answers the state hash.

    The run is published without today's conditions, which that version did not have.
    """
    served = read_served(store)["s0"]
    topics = {row["id"]: row for row in served.topics.select("id", "scope", "title", "topic_kind").to_dicts()}
    rows = [
        {
            "kind": "merged",
            "scope": topics[dropped]["scope"],
            "topic_id": dropped,
            "payload_json": json.dumps(
                {
                    "survivor": survivor,
                    "dropped_title": topics[dropped]["title"],
                    "dropped_kind": topics[dropped]["topic_kind"],
                    "probability": 0.95,
                    "weight": 3.0,
                    "features": [{"name": "owner", "value": 1.0, "weight": 3.0}],
                }
            ),
        }
        for dropped, survivor in pairs
    ]
    return _published(store, at, filled(pl.DataFrame(rows), DECISION).with_columns(reason=pl.lit("the same")))


def _published(store: Store, at: datetime, decisions: pl.DataFrame) -> str:
    served = served_snapshot(store, "s0", "older")
    store = with_model(store, served.manifest.embedding_model)
    run = begin_run(store, "s0", "older", at, pinned=served.manifest)
    try:
        run.decide(CORRECTIONS, decisions)
        follow(store, run)
        publish(store, run)
        return load_snapshot(store.home, "s0", run.facts.number).manifest.state_hash
    finally:
        run.end()
