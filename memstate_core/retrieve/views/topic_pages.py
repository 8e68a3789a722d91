"""Pages of topics, ordered by scope and by id within a scope."""

from __future__ import annotations

from typing import Any

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.listing import Listing

_COLUMNS = ("scope", "title", "summary", "topic_kind", "salience", "failed_salience", "state")
Position = tuple[str, str]
"""A scope and the id of the last topic returned from it."""


def topics_page(listing: Listing, after: Position | None) -> tuple[list[dict[str, Any]], Position | None]:
    """A page of served topics, ready for JSON, and where the next page begins; None on the last one.

    Args:
        listing: what the page is taken from.
        after: where the previous page ended.

    Raises:
        SnapshotDamaged: every shard that holds one of the scopes is damaged.
    """
    limit = listing.limit
    found: list[dict[str, Any]] = []
    for scope, reader in listing.homes(after and after[0]).items():
        if len(found) > limit:
            break
        found += _rows(reader, scope, after[1] if after and scope == after[0] else None, limit + 1 - len(found))
    page = found[:limit]
    return page, (page[-1]["scope"], page[-1]["topic_id"]) if len(found) > limit else None


def _rows(reader: SnapshotReader, scope: str, after: str | None, limit: int) -> list[dict[str, Any]]:
    topics = reader.topics(scope).frame
    if after is not None:
        topics = topics.filter(pl.col("id") > after)
    columns = [pl.col("id").alias("topic_id"), *_COLUMNS, iso_expr(pl.col("created_at"))]
    return topics.sort("id").head(limit).select(columns).to_dicts()
