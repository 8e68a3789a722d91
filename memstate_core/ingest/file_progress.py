"""One file of an import: its rows on their way to the ledger, and what became of those that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memstate_core.ingest.dumps import OpenDump
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.report import FileReport
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.model.errors import UnreadableDump


@dataclass(eq=False)
class FileProgress:
    """A file being read.

    Attributes:
        path: the file.
        dump: the open file; None if it could not be opened.
        error: why it, or its rest, could not be read.
        rows: those that wait for the next batch.
        size: their bytes.
        counts: what became of the rows before.
        reasons: how many of these were refused, by reason code.
    """

    path: Path
    dump: OpenDump | None = None
    error: UnreadableDump | None = None
    rows: list[RawRow] = field(default_factory=list)
    size: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[RawRow]) -> None:
        """Takes more rows."""
        self.rows += rows
        self.size += sum(len(row.raw) for row in rows)

    def settle(self, taken: int, refusals: Sequence[Refusal]) -> None:
        """Notes what became of the rows that wait, and lets go of them.

        Args:
            taken: how many were new.
            refusals: those that were refused; the others were known.
        """
        known = len(self.rows) - taken - len(refusals)
        self.counts += Counter(read=len(self.rows), accepted=taken, duplicate=known, quarantined=len(refusals))
        self.reasons.update(refusal.reason.value for refusal in refusals)
        self.rows, self.size = [], 0

    def report(self) -> FileReport:
        """What became of the file."""
        return FileReport(
            path=str(self.path),
            read=self.counts["read"],
            accepted=self.counts["accepted"],
            duplicate=self.counts["duplicate"],
            quarantined=self.counts["quarantined"],
            error=None if self.error is None else self.error.message,
            format=None if self.dump is None else self.dump.format,
            notes=() if self.dump is None else self.dump.notes.lines(),
        )
