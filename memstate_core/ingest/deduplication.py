"""What the ledger takes of a batch: new observations, refusals it has not seen, and nothing twice.

An observation id stands for one content within its scope, for ever: the first one to arrive keeps it, the
same content again is a duplicate, and other content is refused. Asking and appending happen under one
lock, and by joins, never row by row.
"""

from __future__ import annotations

import polars as pl

from memstate_core.ingest.table_cache import TableCache
from memstate_core.model.ids import sha256_text
from memstate_core.state.ledger import Ledger

NEW, DUPLICATE, CONFLICT = "new", "duplicate", "conflict"

_IDENTITY = pl.struct("scope", "observation_id")
_KNOWN = (
    _IDENTITY.hash(1).alias("_key"),
    _IDENTITY.hash(2).alias("_check"),
    pl.col("content_sha256").hash(3).alias("_content"),
)
"""An observation in 24 bytes; two of them are the same observation only if key and check agree."""


class Deduplication:
    """The way into one ledger for the length of one import."""

    def __init__(self, ledger: Ledger) -> None:
        self._evidence = TableCache(ledger, "evidence", *_KNOWN)
        self._quarantine = TableCache(ledger, "quarantine", pl.col("quarantine_id"))

    def classified(self, observations: pl.DataFrame) -> pl.Series:
        """Whether each observation is new, a duplicate or a conflict, in the order of the rows.

        Args:
            observations: scope, observation_id and content_sha256, in their order of arrival.
        """
        arrived = observations.select(*_KNOWN).with_row_index("_row")
        known = self._evidence.rows().join(arrived, on="_key", how="semi")
        pair = ("_key", "_check")
        return (
            arrived.join(known.rename({"_content": "_held"}), on=pair, how="left", maintain_order="left")
            .with_columns(
                _first=pl.col("_held").is_null() & pl.struct(*pair).is_first_distinct(),
                _kept=pl.coalesce("_held", pl.col("_content").first().over(pair)),
            )
            .select(
                status=pl.when("_first")
                .then(pl.lit(NEW))
                .when(pl.col("_content") == pl.col("_kept"))
                .then(pl.lit(DUPLICATE))
                .otherwise(pl.lit(CONFLICT))
            )
            .to_series()
        )

    def accept(self, evidence: pl.DataFrame) -> int:
        """Appends new observations as one batch; says how many were written now.

        None are if the ledger has already taken this very batch and its rows were removed since.
        """
        if evidence.is_empty():
            return 0
        return evidence.height if self._evidence.append(evidence, _batch_id("evidence", evidence)) else 0

    def quarantine(self, refused: pl.DataFrame) -> None:
        """Appends those refusals (columns QUARANTINE) that the table does not hold."""
        if refused.is_empty():
            return
        unseen = refused.unique("quarantine_id", maintain_order=True).join(
            self._quarantine.rows(), on="quarantine_id", how="anti", maintain_order="left"
        )
        if not unseen.is_empty():
            self._quarantine.append(unseen, _batch_id("quarantine", unseen))


def _batch_id(table: str, rows: pl.DataFrame) -> str:
    return f"{table}/{sha256_text(chr(10).join(rows.get_column(f'{table}_id')))}"
