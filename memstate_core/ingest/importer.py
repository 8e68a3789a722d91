"""Reading dumps into the ledger: file by file, batch by batch, each row accepted, known or refused.

Importing the same dump again, or after a crash, changes nothing (law L1): ids come from content, and a
batch asks the ledger before it appends, under one lock. Clock and run id are passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, chain, pairwise
from pathlib import Path

import polars as pl

from memstate_core.ingest.deduplication import CONFLICT, NEW, Deduplication
from memstate_core.ingest.dumps import READ_ERRORS, dumps_of, open_dump, shown, unreadable
from memstate_core.ingest.evidence_frame import evidence_frame, identity_frame
from memstate_core.ingest.file_progress import FileProgress
from memstate_core.ingest.formats import reader
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.ingest.validation.batch import ValidatedBatch, validate_batch
from memstate_core.ingest.validation.quarantine import quarantine_frame
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.scope import GLOBAL_SCOPE, parse_scope
from memstate_core.policy.settings import Settings
from memstate_core.state.ledger import Ledger

Progress = Callable[[str, int, int], None]
"""Called with a file's path, how many of its bytes were read, and its size in bytes."""

BATCH_BYTES = 32 << 20
"""A batch ends here even if it has fewer rows than the settings allow, so long rows cannot fill memory."""


def import_paths(
    ledger: Ledger,
    settings: Settings,
    paths: Sequence[Path],
    *,
    now: datetime,
    run_id: str,
    default_scope: str | None = None,
    format: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Reads dumps into the ledger. A file that cannot be read stands in the report; the others are read.

    Args:
        ledger: where evidence and refusals go; its lock is taken for each batch.
        settings: the home's settings, of which the section `ingest` matters here.
        paths: files, or folders whose dumps are meant.
        now: the time of the import, UTC.
        run_id: what the rows name as their run.
        default_scope: the scope of rows that name none, as TYPE:ID; the global one if left out.
        format: one of `memstate_core.ingest.formats.FORMATS`; each file's content tells it if left out.
        progress: called after each batch.

    Raises:
        StoreLocked: another process kept the ledger for longer than the wait allows.
        ValueError: the default scope is none, or there is no such format.
    """
    importer = Importer(
        ledger, settings, now=now, run_id=run_id, default_scope=default_scope, format=format, progress=progress
    )
    for path in paths:
        importer.read_path(path)
    return importer.report()


class Importer:
    """One import in progress; what it learns of the ledger serves all its files."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        *,
        now: datetime,
        run_id: str,
        default_scope: str | None = None,
        format: str | None = None,
        progress: Progress | None = None,
        follow_links: bool = True,
    ) -> None:
        if format is not None:
            reader(format)
        days = settings.ingest.max_future_days
        clock = Clock(now + timedelta(days=days), f"a larger ingest.max_future_days (it is {days:g})")
        self._rules = Rules(parse_scope(default_scope) if default_scope else GLOBAL_SCOPE, clock)
        self._ledger, self._deduplication = ledger, Deduplication(ledger)
        self._batch_rows = settings.ingest.chunk_rows
        self._longest = settings.ingest.max_line_mib << 20
        self._now, self._run_id = now, run_id
        self._format = format
        self._follow_links = follow_links
        self._progress = progress
        self._files: list[FileReport] = []
        self._errors: list[UnreadableDump] = []
        self._reasons: Counter[str] = Counter()

    def report(self) -> ImportReport:
        """What became of everything read so far."""
        return ImportReport(tuple(self._files), dict(sorted(self._reasons.items())), tuple(self._errors))

    def read_path(self, path: Path) -> None:
        """Reads a file, or the dumps of a folder."""
        try:
            files = dumps_of(path)
        except UnreadableDump as error:
            self._conclude(FileProgress(path, error=error))
            return
        for _ in self.read_files(files):
            pass

    def read_files(self, paths: Iterable[Path]) -> Iterator[FileReport]:
        """Reads files one after the other; each is reported once its rows are safe in the ledger.

        Small files share a batch, since each batch costs the ledger a commit.
        """
        waiting: list[FileProgress] = []
        for path in paths:
            part = FileProgress(path)
            waiting.append(part)
            for rows in self._batches(part):
                part.add(rows)
                if self._is_enough(waiting):
                    self._take(waiting)
            if self._is_enough(waiting) or not part.rows:
                self._take(waiting)
                yield from map(self._conclude, waiting)
                waiting = []
        self._take(waiting)
        yield from map(self._conclude, waiting)

    def _batches(self, part: FileProgress) -> Iterator[list[RawRow]]:
        """The rows of a file; an error ends them and is noted."""
        try:
            with open_dump(part.path, self._longest, self._format, follow=self._follow_links) as dump:
                part.dump = dump
                for rows in dump.batches(self._batch_rows, BATCH_BYTES):
                    yield rows
                    self._tell(part.path, dump.position(rows[-1].line), dump.total)
                self._tell(part.path, dump.total, dump.total)
        except UnreadableDump as problem:
            part.error = problem

    def _is_enough(self, parts: Sequence[FileProgress]) -> bool:
        rows, size = sum(len(part.rows) for part in parts), sum(part.size for part in parts)
        return 2 * rows >= self._batch_rows or 2 * size >= BATCH_BYTES

    def _take(self, parts: Sequence[FileProgress]) -> None:
        """Brings the rows of some files into the ledger as one batch, and lets go of them."""
        if not any(part.rows for part in parts):
            return
        validated = [self._validated(part) for part in parts]
        records = list(chain.from_iterable(each.records for each in validated))
        with self._ledger.writing(f"import {self._run_id}"):
            status = self._deduplication.classified(identity_frame(records))
            new = [records[at] for at in (status == NEW).arg_true()]
            written = self._deduplication.accept(evidence_frame(new, self._now, self._run_id)) > 0
            refused = []
            ends = list(accumulate((len(each.records) for each in validated), initial=0))
            for part, each, (start, end) in zip(parts, validated, pairwise(ends), strict=True):
                mine = status[start:end]
                refusals = [*each.refusals, *(each.conflict(at) for at in (mine == CONFLICT).arg_true())]
                if kept := part.kept_refusals(refusals):
                    refused.append(quarantine_frame(kept, part.path.name, self._now, self._run_id))
                part.settle(written * int((mine == NEW).sum()), refusals)
            if refused:
                self._deduplication.quarantine(pl.concat(refused))

    def _validated(self, part: FileProgress) -> ValidatedBatch:
        """The rows of a file that wait, validated; what is raised beside refusals is the file's failure."""
        try:
            return validate_batch(part.rows, self._rules, self._longest)
        except READ_ERRORS as error:
            part.error = part.error or unreadable(part.path, error, part.rows[0].line - 1)
            part.rows = []
            return ValidatedBatch([], [], [])

    def _tell(self, path: Path, position: int, total: int) -> None:
        if self._progress is not None:
            self._progress(shown(path), min(position, total), total)

    def _conclude(self, part: FileProgress) -> FileReport:
        if part.error is not None:
            self._errors.append(part.error)
        self._reasons.update(part.reasons)
        self._files.append(part.report())
        return self._files[-1]
