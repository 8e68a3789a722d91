"""Warnings about scopes with more active topics than the policy's bound, as pins can cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memstate_core.state.snapshots import Snapshot


def bound_warnings(snapshots: Iterable[Snapshot], scopes: Collection[str] | None = None) -> list[str]:
    """One sentence for each scope over the bound, by the policy of its snapshot.

    Args:
        snapshots: the served snapshots.
        scopes: the scopes to check; None means all.
    """
    import polars as pl

    from memstate_core.forget.bound import over_bound_warnings
    from memstate_core.policy.settings import Policy
    from memstate_core.retrieve.index.layout import served_counts

    found = []
    for snapshot in snapshots:
        policy = Policy.recorded(snapshot.manifest.policy)
        over = served_counts(snapshot.path).filter(pl.col("active") > policy.max_active_topics)
        asked = over if scopes is None else over.filter(pl.col("scope").is_in(list(scopes)))
        found += over_bound_warnings(asked, policy)
    return found
