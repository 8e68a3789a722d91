"""Compares two policies by simulating both over a store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import Any

import polars as pl

from memstate_core.forget.simulation.event_history import read_history
from memstate_core.forget.simulation.replay_nights import future_nights, has_new_events, past_nights
from memstate_core.forget.simulation.simulation import NIGHTS, Simulated, simulate_policy
from memstate_core.model.progress import tracked
from memstate_core.model.text import iso, iso_expr
from memstate_core.policy.settings import Policy
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store

SHOWN = 20
"""How many topics are listed: the most missed, and the first that would be restored or archived."""
FLOWS = ("archivals", "returns", "missed")
LEVELS = tuple(name for name in NIGHTS if name not in (*FLOWS, "at"))
"""Columns of NIGHTS that are summed over nights, and those of which the last night counts."""


def compare_policies(store: Store, other: Policy, now: datetime, days: int, *, forward: bool = False) -> dict[str, Any]:
    """Simulates another policy beside the store's own; takes no lock and writes nothing.

    Args:
        store: the store, with the present policy in its settings.
        other: the policy to compare it with.
        now: the end of the replayed days, or the beginning of the projected ones.
        days: how many, one night each.
        forward: project the coming days without new events instead of replaying the past ones. Past days without
            any event are projected too.

    Returns:
        Plain data: `mode` (replay or projection), `from`, `to`, `days`; for `present` and `other` the `policy` (its
        digest), `nights` (NIGHTS), `totals` (the last night's levels, the flows of all nights) and `most_missed`
        (topic_id, title, times); `difference` (other less present, by total); `would_come_back` and `would_go`
        (`count`, and the first `topics` as topic_id and title): archived at the end by the present policy only,
        and by the other only.

    Raises:
        StoreNotFound: nothing was published yet.
    """
    histories = [read_history(store, served) for served in read_served(store).values()]
    nights = past_nights(now, days)
    replay = not forward and any(has_new_events(history, nights) for history in histories)
    nights = nights if replay else future_nights(now, days)
    policies, ways = (store.settings.policy, other), 2 * len(histories)
    runs = tracked(product(policies, histories), "simulate", ways, "histories")
    simulated = [simulate_policy(history, policy, nights) for policy, history in runs]
    present, changed = simulated[: len(histories)], simulated[len(histories) :]
    sides = {"present": _summary(present, store.settings.policy), "other": _summary(changed, other)}
    totals = [side["totals"] for side in sides.values()]
    return {
        "mode": "replay" if replay else "projection",
        "from": iso(nights[0].since if replay else now),
        "to": iso(nights[-1].at),
        "days": days,
        **sides,
        "difference": {name: totals[1][name] - totals[0][name] for name in totals[0]},
        "would_come_back": _archived_only(present, changed),
        "would_go": _archived_only(changed, present),
    }


def _summary(shards: Sequence[Simulated], policy: Policy) -> dict[str, Any]:
    nights = pl.concat([shard.nights for shard in shards]).group_by("at").sum().sort("at").select(NIGHTS.keys())
    missed = pl.concat([shard.missed for shard in shards]).sort("times", "topic_id", descending=[True, False])
    return {
        "policy": policy.digest(),
        "nights": nights.with_columns(at=iso_expr(pl.col("at"))).to_dicts(),
        "totals": nights.select(pl.col(LEVELS).last(), pl.col(FLOWS).sum()).row(0, named=True),
        "most_missed": missed.head(SHOWN).to_dicts(),
    }


def _archived_only(here: Sequence[Simulated], there: Sequence[Simulated]) -> dict[str, Any]:
    """Topics that are archived at the end of one simulation and not of the other."""
    pairs = [
        mine.topics.filter("archived").join(its.topics.filter("archived"), on="topic_id", how="anti")
        for mine, its in zip(here, there, strict=True)
    ]
    topics = pl.concat(pairs).select("topic_id", "title").sort("title", "topic_id")
    return {"count": topics.height, "topics": topics.head(SHOWN).to_dicts()}
