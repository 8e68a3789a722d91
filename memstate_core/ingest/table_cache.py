"""In-memory cache of some columns of a ledger table, kept current while batches are appended.

The columns are read once and then extended, and read again if the table's version shows that another process has
written. Invariant: under the ledger's lock the cache equals the table.
"""

from __future__ import annotations

import polars as pl

from memstate_core.state.ledger.ledger import Ledger


class TableCache:
    """Expressions over a table's rows; all appends of this process to the table go through the cache."""

    def __init__(self, ledger: Ledger, table: str, *columns: pl.Expr) -> None:
        self._ledger = ledger
        self._table = table
        self._columns = columns
        self._version: int | None = None
        self._rows: pl.DataFrame | None = None

    def rows(self) -> pl.DataFrame:
        """The columns of all rows of the table. Call it within `Ledger.writing`."""
        version = self._ledger.version(self._table)
        if self._rows is None or version != self._version:
            self._rows = self._ledger.scan(self._table).select(self._columns).collect(engine="streaming")
            self._version = version
        return self._rows

    def append(self, rows: pl.DataFrame, app_id: str) -> bool:
        """Appends a batch after a call of `rows` within the same `Ledger.writing`.

        Returns:
            Whether the batch was written; False if the table already has its id.
        """
        held = self.rows()
        if not self._ledger.append(self._table, rows, app_id):
            return False
        self._rows = pl.concat([held, rows.select(self._columns)])
        self._version = self._ledger.version(self._table)
        return True
