"""What pages of topics, facts and resources have in common: which scopes are listed, in order, and how many entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.damaged_shards import DamagedShards


@dataclass(frozen=True)
class Listing:
    """What pages are taken from.

    Attributes:
        readers: the open snapshots of the store's shards.
        scopes: the scopes to list; None for all.
        limit: the maximum number of entries of a page.
        damaged: the shards whose snapshots are damaged.
    """

    readers: Sequence[SnapshotReader]
    scopes: Collection[str] | None
    limit: int
    damaged: DamagedShards

    def homes(self, first: str | None = None) -> dict[str, SnapshotReader]:
        """The listed scopes in order, each with the snapshot that has it.

        Args:
            first: the scope to begin with; None for the very first.

        Raises:
            SnapshotDamaged: every shard that holds one of the scopes is damaged.
        """
        self.damaged.require_any(self.scopes, [reader.snapshot.manifest.shard for reader in self.readers])
        listed = {
            scope: reader
            for reader in self.readers
            for scope in reader.scopes
            if (self.scopes is None or scope in self.scopes) and (first is None or scope >= first)
        }
        return dict(sorted(listed.items()))
