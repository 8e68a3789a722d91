"""Progress of one file of an import: its pending rows, and the counts of those already committed.

Invariant: one file adds a bounded amount to the quarantine; refused rows beyond that are only counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memstate_core.ingest.dumps import OpenDump, shown
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.report import FileReport
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.model.errors import UnreadableDump

MOST_REFUSALS, MOST_REFUSED_BYTES = 20_000, 64 << 20
"""Most refused rows of one file that go to quarantine, and most of their bytes."""


@dataclass(eq=False)
class FileProgress:
    """A file being read.

    Attributes:
        path: the file.
        dump: the open file; None if it could not be opened.
        error: why the file, or its rest, could not be read.
        rows: rows pending for the next batch.
        size: their bytes.
        counts: results of the committed rows.
        reasons: number of refused rows by reason code.
        kept: refused rows in quarantine (`rows`), their bytes (`bytes`), and refused rows beyond the bound (`over`).
    """

    path: Path
    dump: OpenDump | None = None
    error: UnreadableDump | None = None
    rows: list[RawRow] = field(default_factory=list)
    size: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[RawRow]) -> None:
        """Adds pending rows."""
        self.rows += rows
        self.size += sum(len(row.raw) for row in rows)

    def settle(self, taken: int, refusals: Sequence[Refusal]) -> None:
        """Counts the results of the pending rows, and releases them.

        Args:
            taken: number of new rows.
            refusals: the refused rows; all others are duplicates.
        """
        known = len(self.rows) - taken - len(refusals)
        self.counts += Counter(read=len(self.rows), accepted=taken, duplicate=known, quarantined=len(refusals))
        self.reasons.update(refusal.reason.value for refusal in refusals)
        self.rows, self.size = [], 0

    def fail(self, error: UnreadableDump) -> None:
        """Records why the file failed, if nothing is recorded yet, and releases the pending rows."""
        self.error = self.error or error
        self.rows, self.size = [], 0

    def kept_refusals(self, refusals: Sequence[Refusal]) -> tuple[list[Refusal], Counter[str]]:
        """Those of the next refused rows that go to quarantine, within the file's bound.

        Returns:
            The refusals, and what they add to `kept` once they are committed.
        """
        within, added = [], Counter[str]()
        for refusal in refusals:
            size = len(refusal.row.raw)
            rows, held = self.kept["rows"] + added["rows"], self.kept["bytes"] + added["bytes"]
            if rows < MOST_REFUSALS and held + size <= MOST_REFUSED_BYTES:
                added.update(rows=1, bytes=size)
                within.append(refusal)
            else:
                added["over"] += 1
        return within, added

    def report(self) -> FileReport:
        """The results of the file."""
        return FileReport(
            path=shown(self.path),
            read=self.counts["read"],
            accepted=self.counts["accepted"],
            duplicate=self.counts["duplicate"],
            quarantined=self.counts["quarantined"],
            error=None if self.error is None else self.error.message,
            format=None if self.dump is None else self.dump.format,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = () if self.dump is None else self.dump.notes.lines()
        if not self.kept["over"]:
            return notes
        more = f"{self.kept['over']:,} more rows were refused than the quarantine keeps of one file"
        return (*notes, f"{more}: at most {MOST_REFUSALS:,} rows and {MOST_REFUSED_BYTES >> 20} MiB")
