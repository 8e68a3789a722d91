"""Changes the number of shards of a store, from the ledger.

Each new shard is a fold of the ledger (law L3): its evidence is that of the scopes that hash to it, and its decisions
are those that the old shards had in effect about them (`memstate_core.state.fold.shard_history`). The ledger keeps its
history as it was recorded. The new snapshots are built beside those that are served, compared with them scope by scope,
and published and served at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from memstate_core.model.progress import tracked
from memstate_core.model.scope import Layout
from memstate_core.night.resharding.compare import require_same
from memstate_core.night.resharding.drafts import built
from memstate_core.night.resharding.inputs import inputs
from memstate_core.night.resharding.switch import mark, switch
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store, with_model
from memstate_core.state.snapshots import Manifest


@dataclass(frozen=True)
class Resharded:
    """A change of the number of shards that was published.

    Attributes:
        before: the number of shards until then.
        manifests: the snapshots that are served now.
        kept: how many of them a killed change had built.
        scopes: how many scopes the store has, each with the state that it had.
    """

    before: int
    manifests: tuple[Manifest, ...]
    kept: int
    scopes: int


def reshard(store: Store, served: Mapping[str, Served], count: int, at: datetime | None = None) -> Resharded:
    """Changes the number of shards; the caller holds the store's lock.

    Args:
        store: the store.
        served: what it serves, by shard.
        count: how many shards it shall have, 1 to 256.
        at: the logical time of the new snapshots; None for the latest of the served ones.

    Raises:
        ReshardRefused: the store is in no state in which that can be done; nothing was changed.
        ReshardMismatch: a scope would have another state, or other answers; nothing was changed.
        CheckRefused: a correctness condition would not hold; nothing was changed.
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
        StoreLocked: a backup is in progress; the new snapshots stay for the next attempt.
        DiskFull: the disk has no room for the new snapshots.
    """
    given = inputs(store, served, count, at)
    mark(store.home, given.layout)
    becoming = replace(with_model(store, given.pinned.embedding_model), becoming=given.layout)
    shards = given.layout.names
    made = [built(becoming, given, shard) for shard in tracked(shards, "reshard", len(shards), "shards")]
    snapshots = [snapshot for snapshot, _ in made]
    scopes = require_same(becoming, given, snapshots)
    switch(store, given, snapshots)
    manifests = tuple(snapshot.manifest for snapshot in snapshots)
    return Resharded(given.before, manifests, sum(not fresh for _, fresh in made), scopes)


def placed(served: Mapping[str, Served], layout: Layout) -> dict[str, dict[str, int]]:
    """How many scopes and topics each new shard would have, for a preview.

    Args:
        served: what the store serves, by shard.
        layout: its shards.
    """
    living = pl.concat(
        [each.topics.filter(pl.col("merged_into").is_null()).select("scope") for each in served.values()]
    )
    scopes = living.group_by("scope").len()
    homes = layout.of_each(scopes["scope"])
    sums = scopes.with_columns(homes).group_by("shard").agg(scopes=pl.len(), topics=pl.col("len").sum())
    every = pl.DataFrame({"shard": layout.names}).join(sums, on="shard", how="left", maintain_order="left")
    return {row.pop("shard"): row for row in every.fill_null(0).to_dicts()}
