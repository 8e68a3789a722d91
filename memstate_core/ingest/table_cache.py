"""A few columns of a ledger table, held in memory and kept true while batches are appended.

They are read once and then only extended, unless another process has written in between, which the
table's version tells. So whoever asks under the ledger's lock asks the newest rows.
"""

from __future__ import annotations

import polars as pl

from memstate_core.state.ledger import Ledger


class TableCache:
    """Expressions over a table's rows, and the only way to append to it while they are held."""

    def __init__(self, ledger: Ledger, table: str, *columns: pl.Expr) -> None:
        self._ledger = ledger
        self._table = table
        self._columns = columns
        self._version: int | None = None
        self._rows: pl.DataFrame | None = None

    def rows(self) -> pl.DataFrame:
        """The columns over all rows of the table; call it inside `Ledger.writing`."""
        version = self._ledger.version(self._table)
        if self._rows is None or version != self._version:
            self._rows = self._ledger.scan(self._table).select(self._columns).collect(engine="streaming")
            self._version = version
        return self._rows

    def append(self, rows: pl.DataFrame, app_id: str) -> bool:
        """Appends a batch after `rows` was called, inside the same `Ledger.writing`.

        Returns:
            Whether the batch was written now; False if the table knew its id already.
        """
        held = self.rows()
        if not self._ledger.append(self._table, rows, app_id):
            return False
        self._rows = pl.concat([held, rows.select(self._columns)])
        self._version = self._ledger.version(self._table)
        return True
