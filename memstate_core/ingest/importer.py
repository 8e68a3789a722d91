"""Import of dumps into the ledger: file by file and batch by batch, each row accepted, duplicate or refused.

Invariant (law L1): importing the same dump again, or after a crash, changes nothing, since ids come from content and
each batch is compared with the ledger under one lock. Clock and run id are passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from memstate_core.ingest.batch_import import BatchImport
from memstate_core.ingest.begun_files import BegunFiles
from memstate_core.ingest.dumps import dumps_of, open_dump, shown
from memstate_core.ingest.file_progress import FileProgress
from memstate_core.ingest.formats import reader
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.ingest.validation.limits import limited_scope
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.progress import Progress, report_progress
from memstate_core.model.scope import GLOBAL_SCOPE
from memstate_core.policy.settings import Settings
from memstate_core.state.ledger.ledger import Ledger

BATCH_BYTES = 32 << 20
"""A batch ends at this size even if the settings allow more rows, so that long rows cannot exhaust memory."""


def import_paths(
    ledger: Ledger,
    settings: Settings,
    paths: Sequence[Path],
    *,
    now: datetime,
    run_id: str,
    default_scope: str | None = None,
    format: str | None = None,
) -> ImportReport:
    """Imports dumps into the ledger. A file that cannot be read is reported, and the others are read.

    Args:
        ledger: receives evidence and refusals; its lock is taken for each batch.
        settings: the home's settings, of which the section `ingest` is used.
        paths: files, or folders of dumps.
        now: the time of the import, UTC.
        run_id: the run id of the rows.
        default_scope: the scope of rows without one, as TYPE:ID; the global one if omitted.
        format: one of `memstate_core.ingest.formats.FORMATS`; detected from each file's content if omitted.

    Raises:
        StoreLocked: another process held the ledger's lock for longer than the timeout.
        ValueError: the default scope or the format is invalid.
    """
    importer = Importer(ledger, settings, now=now, run_id=run_id, default_scope=default_scope, format=format)
    for path in paths:
        importer.read_path(path)
    return importer.report()


class Importer:
    """One import in progress; its view of the ledger is shared by all its files.

    The arguments are those of `import_paths`; `api_key` verifies the header of files that a server wrote.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        *,
        now: datetime,
        run_id: str,
        default_scope: str | None = None,
        format: str | None = None,
        follow_links: bool = True,
        api_key: bytes | None = None,
    ) -> None:
        if format is not None:
            reader(format)
        scope = limited_scope(default_scope) if default_scope else GLOBAL_SCOPE
        self._batch_rows = settings.ingest.chunk_rows
        self._longest = settings.ingest.max_line_mib << 20
        self._batch = BatchImport(ledger, Rules(scope, Clock.at(now, settings)), self._longest, now, run_id)
        self._format, self._api_key = format, api_key
        self._follow_links = follow_links
        self._files: list[FileReport] = []
        self._errors: list[UnreadableDump] = []
        self._reasons: Counter[str] = Counter()

    def report(self) -> ImportReport:
        """The results so far."""
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

    def read_files(self, paths: Iterable[Path], begun: BegunFiles | None = None) -> Iterator[FileReport]:
        """Reads files in order; each is reported once its rows are committed to the ledger.

        Small files share a batch, since each batch costs a commit. A file with which a process died has batches of its
        own.

        Args:
            paths: the files.
            begun: notes each file before it is read.
        """
        waiting: list[FileProgress] = []
        for path in paths:
            alone = begun is not None and begun.deaths(path) > 0
            if alone:
                yield from self._finished(waiting)
                waiting = []
            if begun is not None:
                begun.begin(path)
            file = FileProgress(path)
            waiting.append(file)
            for rows in self._batches(file):
                file.add(rows)
                if self._is_enough(waiting):
                    self._batch.take(waiting)
            if alone or self._is_enough(waiting) or not file.rows:
                yield from self._finished(waiting)
                waiting = []
        yield from self._finished(waiting)

    def fail(self, error: UnreadableDump, path: Path) -> None:
        """Reports a file as failed without reading it."""
        self._conclude(FileProgress(path, error=error))

    def load(self) -> None:
        """Reads what the ledger holds; otherwise the first batch does."""
        self._batch.load()

    def _finished(self, files: Sequence[FileProgress]) -> Iterator[FileReport]:
        """Commits the pending rows of files that were read to their end, and reports them."""
        self._batch.take(files)
        yield from map(self._conclude, files)

    def _batches(self, file: FileProgress) -> Iterator[list[RawRow]]:
        """The rows of a file in batches; an error ends them and is recorded."""
        try:
            with open_dump(file.path, self._longest, self._format, self._api_key, follow=self._follow_links) as dump:
                file.dump = dump
                for rows in dump.batches(self._batch_rows, BATCH_BYTES):
                    yield rows
                    _report(file.path, dump.position(rows[-1].line), dump.total)
                _report(file.path, dump.total, dump.total)
        except UnreadableDump as problem:
            file.error = problem

    def _is_enough(self, files: Sequence[FileProgress]) -> bool:
        rows, size = sum(len(file.rows) for file in files), sum(file.size for file in files)
        return 2 * rows >= self._batch_rows or 2 * size >= BATCH_BYTES

    def _conclude(self, file: FileProgress) -> FileReport:
        if file.error is not None:
            self._errors.append(file.error)
        self._reasons.update(file.reasons)
        self._files.append(file.report())
        return self._files[-1]


def _report(path: Path, position: int, total: int) -> None:
    report_progress(Progress(f"import {shown(path)}", min(position, total), total, "bytes"))
