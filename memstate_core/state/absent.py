"""Shards whose snapshots are not on this machine: a bounded checkout of a store at a URL has those of some alone.

Of an absent shard the home has CURRENT and the manifests. Invariant: the note of the checkout names a shard here before
the first of its files is removed, and no longer names it when all of them are there.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import SnapshotAbsent, SnapshotDamaged
from memstate_core.state.home import Home


class _Noted(Struct, frozen=True):
    """The part of a checkout's note that is used here."""

    absent: list[str] = []


def absent_shards(home: Home) -> frozenset[str]:
    """The shards whose snapshots are not in a home; none of a home that is no checkout."""
    try:
        return frozenset(msgjson.decode(home.checkout.read_bytes(), type=_Noted).absent)
    except (OSError, ValueError):
        return frozenset()


def require_here(home: Home, shards: Sequence[str]) -> None:
    """Refuses to go on without the snapshots of some shards.

    Raises:
        SnapshotAbsent: those of at least one are not in the home.
    """
    absent = absent_shards(home)
    for shard in shards:
        if shard in absent:
            raise SnapshotAbsent(shard)


def unreadable(home: Home, snapshot: str, problems: list[str]) -> SnapshotDamaged:
    """The error of a snapshot that cannot be read: it is not in the home, or damaged.

    Args:
        home: the home.
        snapshot: its name, or its shard.
        problems: what is wrong with its files.
    """
    is_absent = snapshot.partition("/")[0] in absent_shards(home)
    return SnapshotAbsent(snapshot) if is_absent else SnapshotDamaged(snapshot, problems)
