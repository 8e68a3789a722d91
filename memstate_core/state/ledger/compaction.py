"""Compaction: joins the small data files of a table, which appends leave, into larger ones.

The rows stay the same, and older versions keep their files until a vacuum removes them (`vacuum`).
"""

from __future__ import annotations

import polars as pl
from deltalake import DeltaTable, PostCommitHookProperties

COMPACT_FILES, COMPACTED_BYTES = 64, 32 << 20
"""So many files below half the size are compacted to files of about that size, which bounds the memory used."""
KEEP_LOG = PostCommitHookProperties(cleanup_expired_logs=False)
"""The log of commits is a link of the chain, so Delta does not remove its older part after a month."""
_SEEDS = (0, 1)


def small_bytes(delta: DeltaTable) -> pl.Series:
    """The sizes of a table's files that are below half the size of a compacted one."""
    sizes = pl.Series(delta.get_add_actions().column("size_bytes"))
    return sizes.filter(2 * sizes < COMPACTED_BYTES)


def join_files(delta: DeltaTable) -> None:
    """Joins the small files of a table in one commit; makes none where there is nothing to join."""
    delta.optimize.compact(target_size=COMPACTED_BYTES, max_concurrent_tasks=1, post_commithook_properties=KEEP_LOG)


def row_hashes(rows: pl.DataFrame) -> pl.DataFrame:
    """128 bits for each row; equal tables have the same ones in another order."""
    return pl.DataFrame([rows.hash_rows(seed).alias(str(seed)) for seed in _SEEDS])
