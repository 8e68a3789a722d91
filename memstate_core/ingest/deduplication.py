"""Deduplication of a batch against the ledger: new observations and new refusals are appended, all else is not.

Invariant: an observation id identifies one content within its scope. The first to arrive keeps it, the same content
again is a duplicate, and other content is a conflict. Lookup and append happen under one lock, by joins and never row
by row.
"""

from __future__ import annotations

import polars as pl

from memstate_core.ingest.table_cache import TableCache
from memstate_core.model.ids import sha256_text
from memstate_core.state.ledger.ledger import Ledger

NEW, DUPLICATE, CONFLICT = "new", "duplicate", "conflict"

_IDENTITY = pl.struct("scope", "observation_id")
_KNOWN = (
    _IDENTITY.hash(1).alias("_key"),
    _IDENTITY.hash(2).alias("_check"),
    pl.col("content_sha256").hash(3).alias("_content"),
)
"""An observation in 24 bytes; two are the same observation only if both key and check are equal."""


class Deduplication:
    """Appends to one ledger during one import."""

    def __init__(self, ledger: Ledger) -> None:
        self._evidence = TableCache(ledger, "evidence", *_KNOWN)
        self._quarantine = TableCache(ledger, "quarantine", pl.col("quarantine_id"))

    def load(self) -> None:
        """Reads what the ledger holds; otherwise the first batch does."""
        self._evidence.rows()
        self._quarantine.rows()

    def classify(self, observations: pl.DataFrame) -> pl.Series:
        """Classifies each observation as new, duplicate or conflict, in the order of the rows.

        Args:
            observations: scope, observation_id and content_sha256, in the order of arrival.
        """
        arrived = observations.select(*_KNOWN).with_row_index("_row")
        known = self._evidence.rows().join(arrived, on="_key", how="semi")
        pair = ("_key", "_check")
        return (
            arrived.join(known.rename({"_content": "_known_content"}), on=pair, how="left", maintain_order="left")
            .with_columns(
                _first=pl.col("_known_content").is_null() & pl.struct(*pair).is_first_distinct(),
                _first_content=pl.coalesce("_known_content", pl.col("_content").first().over(pair)),
            )
            .select(
                status=pl.when("_first")
                .then(pl.lit(NEW))
                .when(pl.col("_content") == pl.col("_first_content"))
                .then(pl.lit(DUPLICATE))
                .otherwise(pl.lit(CONFLICT))
            )
            .to_series()
        )

    def append_new(self, evidence: pl.DataFrame) -> int:
        """Appends new observations as one batch and returns the number written.

        Returns:
            0 if the ledger already has this batch, also where its rows were removed since.
        """
        if evidence.is_empty():
            return 0
        return evidence.height if self._evidence.append(evidence, _batch_id("evidence", evidence)) else 0

    def quarantine(self, refused: pl.DataFrame) -> None:
        """Appends the refusals (columns QUARANTINE) that are not in the table yet."""
        if refused.is_empty():
            return
        unseen = refused.unique("quarantine_id", maintain_order=True).join(
            self._quarantine.rows(), on="quarantine_id", how="anti", maintain_order="left"
        )
        if not unseen.is_empty():
            self._quarantine.append(unseen, _batch_id("quarantine", unseen))


def _batch_id(table: str, rows: pl.DataFrame) -> str:
    return f"{table}/{sha256_text(chr(10).join(rows.get_column(f'{table}_id')))}"
