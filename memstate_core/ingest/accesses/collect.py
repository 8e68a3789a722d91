"""Collection of the access journal into the ledger, exactly once.

The SHA-256 of a segment identifies it, and the ledger accepts each of its batches once. A segment is moved only after
that, so a crash in between means that it is read again and changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import polars as pl

from memstate_core.ingest.accesses.journal_segments import waiting_segments
from memstate_core.ingest.accesses.record import LONGEST_LINE, RECORD, ParsedLines, parse_lines
from memstate_core.ingest.containers.compression import unpacked
from memstate_core.ingest.deduplication import Deduplication
from memstate_core.ingest.dumps import OpenDump
from memstate_core.ingest.inbox import move_into
from memstate_core.ingest.raw_rows import line_rows
from memstate_core.ingest.validation.quarantine import quarantine_frame
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.model.frames import ACCESSES, project
from memstate_core.model.ids import uuid_expr
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger import Ledger

BATCH_ROWS, BATCH_BYTES = 50_000, 16 << 20
"""A batch ends at the first of these. They are fixed, since a batch is identified by its number."""


@dataclass(frozen=True)
class AccessReport:
    """Results of collecting journal segments; read = accepted + duplicate + quarantined.

    Attributes:
        segments: segments that were read and moved.
        read: records found, without blank lines and segment headings.
        accepted: accesses that are new in the ledger.
        duplicate: accesses of segments that were collected before.
        quarantined: lines that were refused.
    """

    segments: int = 0
    read: int = 0
    accepted: int = 0
    duplicate: int = 0
    quarantined: int = 0

    def __add__(self, other: AccessReport) -> AccessReport:
        mine, more = asdict(self), asdict(other)
        return AccessReport(**{name: mine[name] + more[name] for name in mine})

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def collect_accesses(home: Home, ledger: Ledger, settings: Settings, now: datetime, run_id: str) -> AccessReport:
    """Reads pending journal segments into the ledger, in the order of their names, and moves each away.

    The caller holds the store's lock. Malformed lines go to quarantine and do not affect others.

    Args:
        home: the home of the journal; segments that are being written are ignored.
        ledger: receives accesses and refusals; its lock is taken for each batch.
        settings: the home's settings, of which `ingest.max_future_days` is used.
        now: the time of collection, UTC.
        run_id: the run id of the rows.

    Raises:
        UnreadableDump: a segment cannot be read from disk.
        StoreLocked: another process held the ledger's lock for longer than the timeout.
    """
    collector = _Collector(ledger, settings, now, run_id)
    report = AccessReport()
    for path in waiting_segments(home.accesses):
        report += collector.read(path)
        move_into(path, home.collected)
    return report


class _Collector:
    """One collection in progress; its view of the ledger is shared by all segments."""

    def __init__(self, ledger: Ledger, settings: Settings, now: datetime, run_id: str) -> None:
        self._clock = Clock.at(now, settings)
        self._ledger, self._deduplication = ledger, Deduplication(ledger)
        self._now, self._run_id = now, run_id

    def read(self, path: Path) -> AccessReport:
        """Reads one segment; on return its accesses are committed to the ledger."""
        digest, newlines = _scanned(path)
        report = AccessReport(segments=1)
        with path.open("rb") as file:
            rows = line_rows(unpacked(file, None), LONGEST_LINE)
            batches = OpenDump(path, 0, lambda _line: 0, rows).batches(BATCH_ROWS, BATCH_BYTES)
            for number, batch in enumerate(batches, start=1):
                report += self._take(path.name, digest, number, parse_lines(batch, newlines, self._clock))
        return report

    def _take(self, file: str, digest: str, number: int, parsed: ParsedLines) -> AccessReport:
        """Commits a batch unless the ledger has it; the append to `accesses` is the commit point."""
        accesses = access_frame(parsed, digest, self._now, self._run_id)
        refused = quarantine_frame(parsed.refusals, file, self._now, self._run_id)
        read, app_id = accesses.height + refused.height, f"accesses/{digest}"
        with self._ledger.writing(f"accesses {self._run_id}"):
            known = (self._ledger.last_transaction("accesses", app_id) or 0) >= number
            if read and not known:
                self._deduplication.quarantine(refused)
                self._ledger.append("accesses", accesses, app_id, number)
        accepted = 0 if known else accesses.height
        return AccessReport(0, read, accepted, accesses.height - accepted, refused.height)


def access_frame(parsed: ParsedLines, digest: str, now: datetime, run_id: str) -> pl.DataFrame:
    """Accesses as rows of the ledger (columns ACCESSES), in their order.

    Args:
        parsed: lines of a segment.
        digest: SHA-256 of the segment's bytes; ids are made of it and the line number.
        now: the time of collection.
        run_id: the run that collects.
    """
    columns = {name: ACCESSES[name] for name in RECORD} | {"at": pl.String}
    at = pl.col("at").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
    frame = pl.DataFrame(parsed.records, schema=columns, orient="row").with_columns(
        at, line=pl.Series(parsed.lines, dtype=pl.Int64), recorded_at=pl.lit(now), run_id=pl.lit(run_id)
    )
    return project(frame.with_columns(access_id=uuid_expr("access", digest, pl.col("line"))), ACCESSES)


def _scanned(path: Path) -> tuple[str, int]:
    """SHA-256 of a file's bytes, and its number of line feeds."""
    digest, newlines = sha256(), 0
    with path.open("rb") as file:
        for block in unpacked(file, None):
            digest.update(block)
            newlines += block.count(b"\n")
    return digest.hexdigest(), newlines
