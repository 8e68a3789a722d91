"""The recorded decisions of a shard: its own, and those that earlier shards recorded about scopes that it holds.

A change of the number of shards (`memstate_core.night.resharding`) leaves the ledger as it is: a transition keeps the
name of the shard that recorded it. The name of a shard says which change made it and among how many shards, and so
which of the transitions before are about its scopes.

Invariant: the decisions of all shards of a layout are together those that the shards before had in effect. One that
names no scope, such as a row that was set aside, is among those of every shard: it names an id that one of them has.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.scope import resharded, resharding, scopes_of_shard
from memstate_core.state.fold.decisions import ACCEPTED, PUBLISHED, RESHARDED
from memstate_core.state.fold.rollbacks import ROLLED_BACK, spans

_OF_ONE_SHARD = (PUBLISHED, ROLLED_BACK, ACCEPTED, RESHARDED)
"""Decisions about a shard itself; a later one does not take them over."""


def of_shard(rows: pl.LazyFrame, shard: str) -> pl.LazyFrame:
    """The decisions that belong to a shard.

    What a rollback of an earlier shard undid is left out; what one of the shard itself undid is not (`in_effect`).

    Args:
        rows: transitions of the ledger, with all kinds and shards (columns TRANSITIONS).
        shard: the shard.
    """
    own, (change, count) = pl.col("shard") == shard, resharded(shard)
    if not change:
        return rows.filter(own)
    before = resharding(pl.col("shard")) < change
    taken_over = before & ~pl.col("kind").is_in(_OF_ONE_SHARD) & _held(rows.filter(before), shard, count)
    return rows.filter(own | (taken_over & ~_undone(rows.filter(before))))


def _held(earlier: pl.LazyFrame, shard: str, count: int) -> pl.Expr:
    """Whether a decision is about a scope of the shard, or names none."""
    if count == 1:
        return pl.lit(True)
    scopes = earlier.select(pl.col("scope").unique()).collect()["scope"].drop_nulls()
    return pl.col("scope").is_null() | pl.col("scope").is_in(scopes_of_shard(scopes, shard, count).implode())


def _undone(earlier: pl.LazyFrame) -> pl.Expr:
    """Whether a rollback of its shard undid a decision."""
    marks = earlier.filter(pl.col("kind") == ROLLED_BACK).select("seq", "shard", "kind", "payload_json").collect()
    undone = [
        (pl.col("shard") == name) & pl.col("seq").is_between(*span, closed="none")
        for (name,), own in marks.partition_by("shard", as_dict=True).items()
        for span in spans(own)
    ]
    return pl.any_horizontal(undone) if undone else pl.lit(False)
