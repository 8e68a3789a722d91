"""Two policies rehearsed beside each other over a store, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.forget.simulation.event_history import read_past
from memstate_core.forget.simulation.replay_nights import coming_nights, has_news, past_nights
from memstate_core.forget.simulation.simulation import NIGHTS, Rehearsed, rehearse
from memstate_core.model.text import iso, iso_expr
from memstate_core.policy.settings import Policy
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store

SHOWN = 20
"""So many topics are named, the most missed and the first that would come back or go."""
FLOWS = ("archivals", "returns", "missed")
LEVELS = tuple(name for name in NIGHTS if name not in (*FLOWS, "at"))
"""Columns of NIGHTS that add up over nights, and those of which the last counts."""


def simulate(store: Store, other: Policy, now: datetime, days: int, *, forward: bool = False) -> dict[str, Any]:
    """Rehearses another policy beside the store's own; takes no lock and writes nothing.

    Args:
        store: the store; its settings give the present policy.
        other: the policy to compare it with.
        now: where the past ends and the future begins.
        days: how many of them, one night each.
        forward: project the coming days, with nothing new, instead of replaying the past ones. It is done too
            where nothing was said or used in those.

    Returns:
        Plain data: `mode` (replay or projection), `from`, `to`, `days`; for `present` and `other` the `policy` (its
        digest), `nights` (NIGHTS), `totals` (the last night's levels, the flows of all nights) and `most_missed`
        (topic_id, title, times); `difference` (other less present, by total); `would_come_back` and `would_go`
        (`count`, and the first `topics` as topic_id and title): archived in the end by the present policy only,
        and by the other only.

    Raises:
        StoreNotFound: nothing was published yet.
    """
    pasts = [read_past(store, served) for served in read_served(store).values()]
    nights = past_nights(now, days)
    replay = not forward and any(has_news(past, nights) for past in pasts)
    nights = nights if replay else coming_nights(now, days)
    present = [rehearse(past, store.settings.policy, nights) for past in pasts]
    changed = [rehearse(past, other, nights) for past in pasts]
    told = {"present": _told(present, store.settings.policy), "other": _told(changed, other)}
    totals = [side["totals"] for side in told.values()]
    return {
        "mode": "replay" if replay else "projection",
        "from": iso(nights[0].since if replay else now),
        "to": iso(nights[-1].at),
        "days": days,
        **told,
        "difference": {name: totals[1][name] - totals[0][name] for name in totals[0]},
        "would_come_back": _archived_only(present, changed),
        "would_go": _archived_only(changed, present),
    }


def _told(shards: Sequence[Rehearsed], policy: Policy) -> dict[str, Any]:
    nights = pl.concat([shard.nights for shard in shards]).group_by("at").sum().sort("at").select(NIGHTS.keys())
    missed = pl.concat([shard.missed for shard in shards]).sort("times", "topic_id", descending=[True, False])
    return {
        "policy": policy.digest(),
        "nights": nights.with_columns(at=iso_expr(pl.col("at"))).to_dicts(),
        "totals": nights.select(pl.col(LEVELS).last(), pl.col(FLOWS).sum()).row(0, named=True),
        "most_missed": missed.head(SHOWN).to_dicts(),
    }


def _archived_only(here: Sequence[Rehearsed], there: Sequence[Rehearsed]) -> dict[str, Any]:
    """Topics that one rehearsal leaves archived and the other does not."""
    pairs = [
        mine.topics.filter("archived").join(its.topics.filter("archived"), on="topic_id", how="anti")
        for mine, its in zip(here, there, strict=True)
    ]
    topics = pl.concat(pairs).select("topic_id", "title").sort("title", "topic_id")
    return {"count": topics.height, "topics": topics.head(SHOWN).to_dicts()}
