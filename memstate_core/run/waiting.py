"""How much evidence waits for a night, by shard: rows of the ledger that the served snapshot of their shard lacks.

Rows that runs set aside wait for nobody. They are looked up only where something seems to wait, so that asking often
costs one scan of a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from memstate_core.model.scope import scopes_of_shard
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import READMITTED, SET_ASIDE, set_aside
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.snapshots import Snapshot

ASIDE = (SET_ASIDE, READMITTED, ROLLED_BACK)
"""The kinds of decisions that say which rows are set aside."""


@dataclass(frozen=True)
class Waiting:
    """The evidence of a shard.

    Attributes:
        arrived: how many rows it has, without those set aside where any seems to wait.
        rows: how many of them its served snapshot lacks.
    """

    arrived: int
    rows: int


def waiting_evidence(store: Store, served: Mapping[str, Snapshot | None]) -> dict[str, Waiting]:
    """The evidence of some shards.

    Args:
        store: the store.
        served: what each of the shards serves; None for nothing.
    """
    scopes = store.ledger.scan("evidence").group_by("scope").len().collect()
    arrived = _by_shard(store, scopes)
    known = {shard: 0 if each is None else each.manifest.counts["evidence"] for shard, each in served.items()}
    if any(arrived[shard] > rows for shard, rows in known.items()):
        aside = rows_aside(store, list(known))
        named = pl.concat(aside.values()).unique()
        if named.len():
            left_out = store.ledger.scan("evidence").filter(pl.col("evidence_id").is_in(named.implode()))
            arrived -= _by_shard(store, left_out.group_by("scope").len().collect())
    return {shard: Waiting(arrived[shard], arrived[shard] - rows) for shard, rows in known.items()}


def is_late(store: Store, served: Snapshot, last: datetime, waiting: int, now: datetime) -> bool:
    """Whether a night of a shard should have come (`schedule.stale_hours`).

    Nights that are skipped for want of a change are not late. If evidence waits, it counts from its import.

    Args:
        store: the store.
        served: what the shard serves.
        last: when its last night published.
        waiting: how much evidence waits for it.
        now: the time.
    """
    limit, skipped = timedelta(hours=store.settings.schedule.stale_hours), store.settings.schedule.skip_unchanged_days
    if not skipped or now - last <= limit or now - last > limit + timedelta(days=skipped):
        return now - last > limit
    return waiting > 0 and now - max(_first_waiting(store, served) or now, last) > limit


def _first_waiting(store: Store, served: Snapshot) -> datetime | None:
    """When the first of the rows was imported that a shard has and its served snapshot lacks."""
    shard, rows = served.manifest.shard, store.ledger.scan("evidence")
    scopes = rows.select(pl.col("scope").unique()).collect()["scope"]
    mine = pl.col("scope").is_in(scopes_of_shard(scopes, shard, store.layout.count).implode())
    aside = pl.col("evidence_id").is_in(rows_aside(store, [shard])[shard].implode())
    known = pl.scan_parquet(served.path / "evidence.parquet", glob=False).select("evidence_id")
    lacking = rows.filter(mine & ~aside).join(known, on="evidence_id", how="anti")
    first: datetime | None = lacking.select(pl.col("imported_at").min()).collect().item()
    return first


def rows_aside(store: Store, shards: list[str]) -> dict[str, pl.Series]:
    """The ids of the evidence and the accesses that are set aside, by shard."""
    wanted = pl.col("kind").is_in(ASIDE)
    columns = ("seq", "shard", "scope", "kind", "payload_json", "evidence_ids")
    rows = store.ledger.scan("transitions").filter(wanted).select(columns).sort("seq").collect()
    return {shard: set_aside(in_effect(of_shard(rows.lazy(), shard).collect())) for shard in shards}


def _by_shard(store: Store, scopes: pl.DataFrame) -> Counter[str]:
    """Rows by shard, from rows by scope (columns scope and len)."""
    shards = scopes.select("len", shard=store.layout.of_each(scopes["scope"]))
    return Counter(dict(shards.group_by("shard").agg(pl.col("len").sum()).iter_rows()))
