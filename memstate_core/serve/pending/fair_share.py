"""Bounds on pending rows: a limit for each scope, and a total that is shared fairly.

Rows of one scope never displace those of another that stays within its share: the total is filled round by round, one
row of each scope at a time, the newest first.
"""

from __future__ import annotations

import polars as pl

SCOPE_ROWS, TOTAL_ROWS = 5_000, 20_000
SCOPE_BYTES, TOTAL_BYTES = 16 << 20, 64 << 20
"""How many pending rows, and how many bytes of them, are kept for each scope and altogether."""

_AT = "_at"


def row_bytes() -> pl.Expr:
    """The size of an evidence row: its text and its payload, in bytes."""
    parts = [pl.col(name).str.len_bytes().fill_null(0) for name in ("text", "payload_json")]
    return pl.sum_horizontal(parts).cast(pl.Int64)


def fair_share(rows: pl.DataFrame, size: pl.Expr) -> pl.DataFrame:
    """The rows within the bounds, in their order.

    Args:
        rows: column scope among others, the newest first.
        size: the size of a row in bytes.
    """
    numbered = rows.with_row_index(_AT).with_columns(_size=size)
    ranked = numbered.with_columns(
        _rank=pl.int_range(pl.len()).over("scope"), _held=pl.col("_size").cum_sum().over("scope")
    )
    own = ranked.filter((pl.col("_rank") < SCOPE_ROWS) & (pl.col("_held") <= SCOPE_BYTES))
    shared = own.sort("_rank", _AT).filter(
        (pl.int_range(pl.len()) < TOTAL_ROWS) & (pl.col("_size").cum_sum() <= TOTAL_BYTES)
    )
    return shared.sort(_AT).select(rows.columns)
