"""Collection of the access journal into the ledger, exactly once.

The SHA-256 of a segment identifies it, and the ledger accepts each of its batches once. A segment is moved only after
that, so a crash in between means that it is read again and changes nothing. Invariant: no segment and no line stops a
run. A segment that cannot be read, or with which two processes died, is moved to `accesses/failed` and reported; lines
that raise an unforeseen error are found by bisection and refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import polars as pl

from memstate_core.ingest import unreported
from memstate_core.ingest.accesses.journal_segments import opened, waiting_segments
from memstate_core.ingest.accesses.record import LONGEST_LINE, RECORD, ParsedLines, parse_lines
from memstate_core.ingest.begun_files import DEATHS, JOURNAL, BegunFiles, why_set_aside
from memstate_core.ingest.bisection import guilty_rows
from memstate_core.ingest.containers.compression import unpacked
from memstate_core.ingest.deduplication import Deduplication
from memstate_core.ingest.dumps import READ_ERRORS, OpenDump, shown, unreadable
from memstate_core.ingest.file_progress import FileProgress
from memstate_core.ingest.inbox import move_into
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.reasons import Reason
from memstate_core.ingest.unforeseen import described, is_unforeseen, raises_unforeseen
from memstate_core.ingest.validation.quarantine import Refusal, quarantine_frame
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.frames import project
from memstate_core.model.ids import uuid_expr
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger

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
        errors: why segments, or the rest of them, could not be read; each names its segment.
    """

    segments: int = 0
    read: int = 0
    accepted: int = 0
    duplicate: int = 0
    quarantined: int = 0
    errors: tuple[str, ...] = ()

    def __add__(self, other: AccessReport) -> AccessReport:
        mine, more = asdict(self), asdict(other)
        return AccessReport(**{name: mine[name] + more[name] for name in mine})


def collect_accesses(home: Home, ledger: Ledger, settings: Settings, now: datetime, run_id: str) -> AccessReport:
    """Reads pending journal segments into the ledger, in the order of their names, and moves each away.

    The caller holds the store's lock. Bad lines go to quarantine and do not affect others; a segment that cannot be
    read to its end is reported and moved to `accesses/failed`, and its lines before the damage are kept.

    Args:
        home: the home of the journal; segments that are being written are ignored.
        ledger: receives accesses and refusals; its lock is taken for each batch.
        settings: the home's settings, of which `ingest.max_future_days` is used.
        now: the time of collection, UTC.
        run_id: the run id of the rows.

    Raises:
        StoreLocked: another process held the ledger's lock for longer than the timeout.
    """
    collector = _Collector(ledger, settings, now, run_id)
    report = AccessReport()
    with BegunFiles(home.imports, JOURNAL) as begun:
        for path in waiting_segments(home.accesses):
            if (deaths := begun.deaths(path)) >= DEATHS:
                found = AccessReport(1, errors=(why_set_aside(path, deaths, "accesses/failed").message,))
                unreported.keep_errors(home.imports, f"{run_id}-accesses", (report + found).errors)
                begun.forget(path)
            else:
                begun.begin(path)
                found = collector.read(path)
                begun.end(path)
            move_into(path, home.failed_accesses if found.errors else home.collected)
            report += found
    return report


class _Collector:
    """One collection in progress; its view of the ledger is shared by all segments."""

    def __init__(self, ledger: Ledger, settings: Settings, now: datetime, run_id: str) -> None:
        self._clock = Clock.at(now, settings)
        self._ledger, self._deduplication = ledger, Deduplication(ledger)
        self._now, self._run_id = now, run_id

    def read(self, path: Path) -> AccessReport:
        """Reads one segment; on return its accesses are committed to the ledger."""
        report = AccessReport(segments=1)
        try:
            with _open(path) as file:
                segment = _Segment(FileProgress(path), *_scanned(path, file))
                rows = line_rows(unpacked(file, None), LONGEST_LINE)
                batches = OpenDump(path, 0, lambda _line: 0, rows).batches(BATCH_ROWS, BATCH_BYTES)
                for number, batch in enumerate(batches, start=1):
                    report += self._take(segment, number, batch)
        except UnreadableDump as error:
            report += AccessReport(errors=(error.message,))
        return report

    def _take(self, segment: _Segment, number: int, batch: list[RawRow]) -> AccessReport:
        """Commits a batch, without the lines that raise an unforeseen error; those are refused."""
        try:
            return self._commit(segment, number, batch, [])
        except BaseException as error:
            if not is_unforeseen(error):
                raise
            guilty = guilty_rows(batch, lambda rows: self._fails(segment, rows))
            if not guilty:
                raise
            problem = described(error)
        detail = f"collecting accesses failed with it: {problem}"
        refusals = [Refusal(row, Reason.UNFORESEEN_ERROR, detail) for row in guilty]
        kept = {row.line for row in batch} - {row.line for row in guilty}
        return self._commit(segment, number, [row for row in batch if row.line in kept], refusals)

    def _fails(self, segment: _Segment, rows: list[RawRow]) -> bool:
        """Whether lines raise an unforeseen error, tried on an empty ledger in a folder of its own."""

        def store() -> None:
            with TemporaryDirectory() as folder:
                trial = Ledger(Path(folder))
                accesses, refusals = self._parsed(segment, rows)
                trial.append("accesses", accesses, "trial")
                trial.append("quarantine", self._refused(segment, refusals), "trial")

        return raises_unforeseen(store)

    def _commit(self, segment: _Segment, number: int, batch: list[RawRow], refusals: list[Refusal]) -> AccessReport:
        """Commits a batch unless the ledger has it; the append to `accesses` is the commit point."""
        accesses, more = self._parsed(segment, batch)
        refusals = [*refusals, *more]
        read, app_id = accesses.height + len(refusals), f"accesses/{segment.digest}"
        with self._ledger.writing(f"accesses {self._run_id}"):
            known = (self._ledger.last_transaction("accesses", app_id) or 0) >= number
            kept, added = segment.progress.kept_refusals(refusals)
            if read and not known:
                self._deduplication.quarantine(self._refused(segment, kept))
                self._ledger.append("accesses", accesses, app_id, number)
        segment.progress.kept.update(added)
        accepted = 0 if known else accesses.height
        return AccessReport(0, read, accepted, accesses.height - accepted, len(refusals))

    def _parsed(self, segment: _Segment, rows: list[RawRow]) -> tuple[pl.DataFrame, list[Refusal]]:
        parsed = parse_lines(rows, segment.newlines, self._clock)
        return access_frame(parsed, segment.digest, self._now, self._run_id), parsed.refusals

    def _refused(self, segment: _Segment, refusals: list[Refusal]) -> pl.DataFrame:
        return quarantine_frame(refusals, shown(Path(segment.progress.path.name)), self._now, self._run_id)


@dataclass(frozen=True)
class _Segment:
    """A segment that is being read: how much of it went to quarantine, its SHA-256, and its number of line feeds."""

    progress: FileProgress
    digest: str
    newlines: int


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


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """Opens a segment.

    Raises:
        UnreadableDump: it cannot be opened, or is a symbolic link.
    """
    try:
        file = opened(path)
    except READ_ERRORS as error:
        raise unreadable(path, error) from None
    with file:
        yield file


def _scanned(path: Path, file: BinaryIO) -> tuple[str, int]:
    """SHA-256 of a file's bytes, and its number of line feeds; then rewinds it.

    Raises:
        UnreadableDump: it cannot be read.
    """
    digest, newlines = sha256(), 0
    try:
        for block in unpacked(file, None):
            digest.update(block)
            newlines += block.count(b"\n")
        file.seek(0)
    except READ_ERRORS as error:
        raise unreadable(path, error) from None
    return digest.hexdigest(), newlines
