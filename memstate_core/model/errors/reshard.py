"""The number of shards of a store was not changed."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


class ReshardRefused(MemstateError):
    """The store is in no state in which its number of shards can change."""

    def __init__(self, home: str, problem: str, advice: str) -> None:
        super().__init__(
            f"the number of shards of {home} was not changed: {problem}. {advice} Nothing was changed.",
            home=home,
            problem=problem,
            advice=advice,
        )


class ReshardMismatch(MemstateError):
    """Scopes would have another state, or other answers, in their new shards."""

    exit_code = 4
    _SHOWN = 5

    def __init__(self, home: str, what: str, scopes: Sequence[str]) -> None:
        shown = ", ".join(scopes[: self._SHOWN]) + f" and {len(scopes) - self._SHOWN} more" * (
            len(scopes) > self._SHOWN
        )
        super().__init__(
            f"the number of shards of {home} was not changed: {len(scopes)} scopes would have {what} ({shown}). "
            "Topics of several scopes with one id, which share a shard or do not, may cause it: `memstate report` "
            "lists evidence without a topic. So may a new version of memstate: run `memstate maintain` first. What "
            "was served still is.",
            home=home,
            what=what,
            scopes=[*scopes],
        )


class ShardRetired(MemstateError):
    """A run was asked for a shard that the store no longer has."""

    def __init__(self, shard: str, shards: Sequence[str]) -> None:
        super().__init__(
            f"the store has no shard {shard}: its number of shards was changed, it has {shards[0]} to {shards[-1]}. "
            "Restart `memstate ui` or the daemon, or reload the code location in Deployment, and run again.",
            shard=shard,
            shards=[*shards],
        )
