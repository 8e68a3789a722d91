"""Partitions: one per shard."""

from __future__ import annotations

import dagster as dg

from memstate_core.run.store import Store

PARTITION_TAG = "dagster/partition"
"""The tag of a run that names its shard."""


def shard_partitions(store: Store) -> dg.StaticPartitionsDefinition:
    """The shards of a store as partitions; their number is a setting, read when definitions load."""
    return dg.StaticPartitionsDefinition(store.shards)


def shard_of_check(context: dg.AssetCheckExecutionContext) -> str:
    """The shard that a check belongs to; partitioned checks are a preview in Dagster, the tag of the run names it."""
    return str(context.run.tags[PARTITION_TAG])
