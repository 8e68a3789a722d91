"""The state of each shard in `/readyz`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from memstate_core.model.errors import MemstateError
from memstate_core.serve.snapshots.generation import SharedReader

State = Literal["open", "not_open", "empty", "failed"]


@dataclass(frozen=True)
class ShardState:
    """What is served of a shard.

    Attributes:
        state: `open`; `not_open`, which the next request that needs it changes; `empty` if it has no snapshot; `failed`
            if nothing can be served of it.
        snapshot: the name of the open snapshot.
        written_at: when that was written.
        error: why nothing can be served, or why a newer snapshot cannot.
        problem: the same in words.
    """

    state: State
    snapshot: str | None = None
    written_at: datetime | None = None
    error: MemstateError | None = None
    problem: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether requests for it are answered."""
        return self.state != "failed"

    def age(self, now: datetime) -> float:
        """Seconds since its open snapshot was written; 0 without one."""
        return 0.0 if self.written_at is None else max(0.0, (now - self.written_at).total_seconds())

    def described(self, now: datetime) -> dict[str, Any]:
        """Its entry in `/readyz`."""
        age = None if self.written_at is None else round(self.age(now), 3)
        return {"state": self.state, "snapshot": self.snapshot, "age_seconds": age, "problem": self.problem}


def shard_states(
    shards: Sequence[str],
    readers: Sequence[SharedReader],
    errors: Mapping[str, MemstateError],
    otherwise: State = "empty",
) -> dict[str, ShardState]:
    """The state of each shard.

    Args:
        shards: the names of all.
        readers: the open snapshots.
        errors: what is wrong, by shard.
        otherwise: the state of a shard that is not open, if nothing is wrong.
    """
    opened = {reader.snapshot.manifest.shard: reader for reader in readers}

    def state(shard: str) -> ShardState:
        reader, error = opened.get(shard), errors.get(shard)
        if reader is not None:
            return ShardState("open", reader.name, reader.written_at)
        return ShardState(otherwise) if error is None else ShardState("failed", error=error, problem=error.message)

    return {shard: state(shard) for shard in shards}
