"""A batch of raw rows, batch: what can be read, with the row it came from, and what is refused.

The one loop over single rows. All before it moves bytes, all after it moves columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, Rejection, shortened
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.validate import Record, Rules, validate


class ValidatedBatch(NamedTuple):
    """What a batch holds.

    Attributes:
        records: the rows that can be accepted (columns RECORD), in their order.
        origins: for each of them the row as found.
        refusals: the rows that cannot.
    """

    records: list[Record]
    origins: list[RawRow]
    refusals: list[Refusal]

    def conflict(self, at: int) -> Refusal:
        """The refusal of a record whose observation id already stands for other content."""
        scope, observation_id, *_ = self.records[at]
        found = f"observation_id {observation_id!r} already stands for other content in scope {scope!r}"
        detail = shortened(f"{found}, expected the same content, or an id that is new in this scope")
        return Refusal(self.origins[at], Reason.CONFLICTING_OBSERVATION, detail)


def validate_batch(rows: Iterable[RawRow], rules: Rules, longest: int) -> ValidatedBatch:
    """Reads each row of a batch.

    Args:
        rows: rows as found.
        rules: what holds for every row of the import.
        longest: the most bytes that a row may have; longer ones came cut.
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


def _too_long(row: RawRow, longest: int) -> Rejection:
    expected = f"at most {longest}; a larger ingest.max_line_mib would allow it"
    return Rejection(Reason.LINE_TOO_LONG, f"the row has {row.length} bytes, expected {expected}")
