"""Batch validation: raw rows become records, each with its row, or refusals.

This is the only loop over single rows: before it data are bytes, after it columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import NamedTuple

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, Rejection, shortened
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.validate import Record, Rules, validate
from memstate_core.state.ledger.erased_observations import Erased

_ERASED = "the observation was erased from this store; its content is not kept, expected other observations"


class ValidatedBatch(NamedTuple):
    """A validated batch.

    Attributes:
        records: the valid rows (columns RECORD), in their order.
        origins: the raw row of each record.
        refusals: the refused rows.
    """

    records: list[Record]
    origins: list[RawRow]
    refusals: list[Refusal]

    def conflict(self, at: int) -> Refusal:
        """The refusal of a record whose observation id already identifies other content."""
        scope, observation_id, *_ = self.records[at]
        found = f"observation_id {observation_id!r} is already used for other content in scope {scope!r}"
        detail = shortened(f"{found}, expected the same content, or an id that is new in this scope")
        return Refusal(self.origins[at], Reason.CONFLICTING_OBSERVATION, detail)


def validate_batch(rows: Iterable[RawRow], rules: Rules, longest: int) -> ValidatedBatch:
    """Validates each row of a batch.

    Args:
        rows: raw rows.
        rules: rules for every row of the import.
        longest: most bytes of a row; longer ones arrive truncated.
    """
    batch = ValidatedBatch([], [], [])
    for row in rows:
        try:
            if row.sha256 is not None:
                raise _too_long(row, longest)
            if row.reason is not None:
                raise Rejection(row.reason, row.detail)
            batch.records.append(validate(row.raw, rules, row.identity))
            batch.origins.append(row)
        except Rejection as refused:
            batch.refusals.append(Refusal(row, refused.reason, refused.detail))
    return batch


def without_erased(batch: ValidatedBatch, erased: Erased) -> ValidatedBatch:
    """A batch without observations that were erased; they are refused, and nothing of their content is kept."""
    if not erased:
        return batch
    known = [erased.knows(*record[:3]) for record in batch.records]
    refusals = [Refusal(_emptied(row), Reason.ERASED, _ERASED) for row in compress(batch.origins, known)]
    kept = [not each for each in known]
    return ValidatedBatch(
        [*compress(batch.records, kept)], [*compress(batch.origins, kept)], [*batch.refusals, *refusals]
    )


def _emptied(row: RawRow) -> RawRow:
    return RawRow(row.line, b"", row.length, member=row.member)


def _too_long(row: RawRow, longest: int) -> Rejection:
    expected = f"at most {longest}; a larger ingest.max_line_mib would allow it"
    return Rejection(Reason.LINE_TOO_LONG, f"the row has {row.length} bytes, expected {expected}")
