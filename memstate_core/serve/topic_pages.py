"""Pages of topics, ordered by scope and by id within a scope."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.cursors import cursor_of
from memstate_core.state.damaged_shards import DamagedShards

_COLUMNS = ("scope", "title", "summary", "topic_kind", "salience", "failed_salience", "state")
Position = tuple[str, str]
"""A scope and the id of the last topic returned from it."""


def topics_page(
    readers: Sequence[SnapshotReader],
    scopes: Collection[str] | None,
    after: Position | None,
    limit: int,
    damaged: DamagedShards,
) -> dict[str, Any]:
    """A page of served topics, ready for JSON; `missing_shards` names damaged shards that hold some of the scopes.

    Args:
        readers: the open snapshots.
        scopes: the scopes to list; None for all.
        after: where the previous page ended.
        limit: the maximum number of topics.
        damaged: the shards whose snapshots are damaged.

    Raises:
        SnapshotDamaged: every shard that holds one of the scopes is damaged.
    """
    damaged.require_any(scopes, [reader.snapshot.manifest.shard for reader in readers])
    homes = {scope: reader for reader in readers for scope in reader.scopes if scopes is None or scope in scopes}
    found: list[dict[str, Any]] = []
    for scope, reader in sorted(homes.items()):
        if len(found) > limit:
            break
        if after is None or scope >= after[0]:
            found += _rows(reader, scope, after[1] if after and scope == after[0] else None, limit + 1 - len(found))
    page = found[:limit]
    more = len(found) > limit
    cursor = cursor_of((page[-1]["scope"], page[-1]["topic_id"])) if more else None
    return {"topics": page, "next_cursor": cursor} | damaged.note(scopes)


def _rows(reader: SnapshotReader, scope: str, after: str | None, limit: int) -> list[dict[str, Any]]:
    topics = reader.topics(scope).frame
    if after is not None:
        topics = topics.filter(pl.col("id") > after)
    columns = [pl.col("id").alias("topic_id"), *_COLUMNS, iso_expr(pl.col("created_at"))]
    return topics.sort("id").head(limit).select(columns).to_dicts()
