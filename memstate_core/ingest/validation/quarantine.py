"""Conversion of refusals to rows of the quarantine table.

Invariant: a refusal's id is made of the file's name, the line, the reason and the row's bytes, so importing the same
dump again gives the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

import polars as pl

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason
from memstate_core.model.frames import conform
from memstate_core.model.ids import uuid_expr
from memstate_core.model.ledger_tables import QUARANTINE


class Refusal(NamedTuple):
    """One refused row and why."""

    row: RawRow
    reason: Reason
    detail: str


def quarantine_frame(refusals: Sequence[Refusal], file: str, now: datetime, run_id: str) -> pl.DataFrame:
    """The refusals as rows of the quarantine (columns QUARANTINE), in their order.

    Args:
        refusals: the refused rows.
        file: the name of the dump without its folder; the path inside an archive is appended.
        now: the time of the import.
        run_id: the run or command that imports.
    """
    columns = {
        "file": [file if row.member is None else f"{file}/{row.member}" for row, _, _ in refusals],
        "line": [row.line for row, _, _ in refusals],
        "reason": [reason.value for _, reason, _ in refusals],
        "detail": [detail for _, _, detail in refusals],
        "raw": [row.raw for row, _, _ in refusals],
        "raw_bytes": [row.length for row, _, _ in refusals],
        "raw_sha256": [row.sha256 or sha256(row.raw).hexdigest() for row, _, _ in refusals],
    }
    frame = pl.DataFrame(columns, schema={name: QUARANTINE[name] for name in columns}).with_columns(
        imported_at=pl.lit(now), run_id=pl.lit(run_id)
    )
    refusal_id = uuid_expr("quarantine", *(pl.col(name) for name in ("file", "line", "reason", "raw_sha256")))
    return conform(frame.with_columns(quarantine_id=refusal_id), QUARANTINE)
