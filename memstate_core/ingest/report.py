"""Results of an import. Invariant: in every file, read = accepted + duplicate + quarantined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from memstate_core.model.errors import UnreadableDump


@dataclass(frozen=True)
class FileReport:
    """The results of one file.

    Attributes:
        path: the path of the file as it was given.
        read: rows found, without blank lines.
        accepted: rows that are new evidence.
        duplicate: rows already in the ledger, or repeated in the file.
        quarantined: rows that were refused.
        error: why the file, or its rest, could not be read.
        format: the format in which it was read.
        notes: what the reader left out or had to decide.
    """

    path: str
    read: int
    accepted: int
    duplicate: int
    quarantined: int
    error: str | None = None
    format: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportReport:
    """The results of all files of one import.

    Attributes:
        files: one report per file, in the order of reading.
        reasons: number of refused rows by reason code.
        errors: files that could not be read completely.
    """

    files: tuple[FileReport, ...]
    reasons: Mapping[str, int]
    errors: tuple[UnreadableDump, ...]

    def followed_by(self, other: ImportReport) -> ImportReport:
        """The results of two imports, one after the other."""
        reasons = Counter(self.reasons) + Counter(other.reasons)
        return ImportReport(self.files + other.files, dict(sorted(reasons.items())), self.errors + other.errors)

    @property
    def read(self) -> int:
        """Rows found in all files."""
        return sum(file.read for file in self.files)

    @property
    def accepted(self) -> int:
        """Rows that are new evidence."""
        return sum(file.accepted for file in self.files)

    @property
    def duplicate(self) -> int:
        """Rows already in the ledger."""
        return sum(file.duplicate for file in self.files)

    @property
    def quarantined(self) -> int:
        """Rows that were refused."""
        return sum(file.quarantined for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The report as `memstate import --json` prints it."""
        return {
            "read": self.read,
            "accepted": self.accepted,
            "duplicate": self.duplicate,
            "quarantined": self.quarantined,
            "files": [asdict(file) for file in self.files],
            "reasons": dict(self.reasons),
            "errors": [error.message for error in self.errors],
        }
