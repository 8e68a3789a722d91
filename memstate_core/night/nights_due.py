"""Which shards have a night, and why: one to which nothing was written may go without (`skip_unchanged_days`).

A night of a shard gives the state of its snapshot again, but for saliences, where nothing was written, no scope waits
for a search of duplicates and the ladder has no step to take (laws L2 and L3; see `reused_base`). `night_reasons`
has the ways in which this may not hold.

Invariant: without the nights that are skipped, the ledger gets the same decisions at the same times, so the next night
publishes the state that it would publish with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memstate_core.night.night_reasons import UNREADABLE, ShardAsServed, reason_for_night
from memstate_core.night.written_since import WrittenSince
from memstate_core.run.store import Store
from memstate_core.state.snapshots import Snapshot


@dataclass(frozen=True)
class NightsDue:
    """What was decided about the shards of a store.

    Attributes:
        due: why each shard with a night has one.
        skipped: the snapshots that the other shards serve on.
    """

    due: dict[str, str]
    skipped: tuple[Snapshot, ...] = ()


def nights_due(store: Store, now: datetime) -> NightsDue:
    """Decides which shards have a night; the caller holds the store's lock and has imported all input.

    Args:
        store: the store, whose setting `schedule.skip_unchanged_days` is not 0.
        now: the logical time of the nights.

    Raises:
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
    """
    store.ledger.chain.require_sound()
    written, due, skipped = WrittenSince.of(store), dict[str, str](), list[Snapshot]()
    for shard, served in written.served.items():
        reason = UNREADABLE if served is None else reason_for_night(ShardAsServed(store, served, now, written))
        if reason is not None:
            due[shard] = reason
        elif served is not None:
            skipped.append(served)
    return NightsDue(due, tuple(skipped))
