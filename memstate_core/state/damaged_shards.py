"""Shards whose served snapshot is damaged, or not on this machine.

Answers can come from the others and say what they lack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.scope import Layout

_ONE = Layout(1)


@dataclass(frozen=True)
class DamagedShards:
    """The damaged shards of a store.

    Attributes:
        layout: the shards of the store.
        errors: what is wrong with each, by shard.
    """

    layout: Layout = _ONE
    errors: Mapping[str, SnapshotDamaged] = field(default_factory=dict)

    def plus(self, error: SnapshotDamaged) -> DamagedShards:
        """These and the shard whose snapshot an error names."""
        return DamagedShards(self.layout, {**self.errors, _shard(error): error})

    def of(self, scopes: Collection[str] | None) -> dict[str, SnapshotDamaged]:
        """Those that hold one of these scopes; all of them for None."""
        if scopes is None:
            return dict(self.errors)
        asked = {self.layout.of(scope) for scope in scopes}
        return {shard: error for shard, error in self.errors.items() if shard in asked}

    def require_any(self, scopes: Collection[str] | None, sound: Collection[str]) -> None:
        """Checks that something can be answered about these scopes.

        Args:
            scopes: the scopes of a question; None for all.
            sound: the shards that can be read.

        Raises:
            SnapshotDamaged: every shard that holds one of the scopes is damaged.
        """
        found = self.of(scopes)
        asked = set(sound) | set(found) if scopes is None else {self.layout.of(scope) for scope in scopes}
        if found and asked <= set(found):
            raise next(iter(found.values()))

    def note(self, scopes: Collection[str] | None) -> dict[str, Any]:
        """The key `missing_shards` of an answer about these scopes; empty if it lacks nothing."""
        found = self.of(scopes).items()
        listed = [
            {"shard": shard, "snapshot": error.facts["snapshot"], "message": error.message} for shard, error in found
        ]
        return {"missing_shards": listed} if listed else {}


def _shard(error: SnapshotDamaged) -> str:
    return str(error.facts["snapshot"]).partition("/")[0]
