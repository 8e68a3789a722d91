"""The observations in the inbox, as evidence: those acknowledged by this process and those that others put there.

The folder is the truth: an accepted observation stays there until a run has it durable in the ledger, so this view has
everything that was acknowledged, also after a restart. Lines accepted by this process are kept in memory until they
are parsed, so that its own files are not read back. Nothing is parsed before the first request asks for it.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import polars as pl
from cachetools import FIFOCache

from memstate_core.ingest.api_files import written_at
from memstate_core.ingest.dumps import open_dump
from memstate_core.ingest.evidence_frame import evidence_frame
from memstate_core.ingest.formats import OBSERVATIONS
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.validation.batch import validate_batch
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.frames import EVIDENCE, empty
from memstate_core.model.scope import GLOBAL_SCOPE
from memstate_core.policy.settings import Settings
from memstate_core.serve.observations import clock_at
from memstate_core.serve.pending.fair_share import fair_share, row_bytes

FILES_BYTES = 256 << 20
"""How many bytes of files are read, the newest files first; what is kept of them is bounded by `fair_share`."""

UNREAD_BYTES = 16 << 20
"""How many bytes of acknowledged lines are held until they are parsed; beyond that they are read from their files."""

_BATCH_ROWS, _BATCH_BYTES = 5_000, 16 << 20
_ROWS = {**EVIDENCE, "_file": pl.String}
_KEY = ["scope", "observation_id", "_file"]


@dataclass(frozen=True)
class InboxObservations:
    """The observations in the inbox.

    Attributes:
        rows: columns EVIDENCE, the newest first. An observation without a time has the time of its acceptance.
        cut: scopes of which a limit left rows out.
        complete: whether all files were read; False if a limit, or the format of a dump, left one out.
        version: differs for every content of the inbox.
    """

    rows: pl.DataFrame
    cut: frozenset[str]
    complete: bool
    version: int


@dataclass(frozen=True)
class _File:
    name: str
    at: int
    size: int

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.at / 1e9, UTC)


class _Lines(FIFOCache[str, bytes]):
    """Acknowledged lines by file; `dropped` names the files of which some were evicted."""

    def __init__(self) -> None:
        super().__init__(UNREAD_BYTES, getsizeof=len)
        self.dropped: set[str] = set()

    def popitem(self) -> tuple[str, bytes]:
        name, lines = super().popitem()
        self.dropped.add(name)
        return name, lines


class InboxView:
    """A thread-safe view of one inbox."""

    def __init__(self, inbox: Path, settings: Settings) -> None:
        self._inbox, self._settings = inbox, settings
        self._longest = settings.ingest.max_line_mib << 20
        self._lock, self._noting = threading.Lock(), threading.Lock()
        self._lines = _Lines()
        self._known: dict[str, _File] = {}
        self._unread: set[str] = set()
        self._cut: dict[str, frozenset[str]] = {}
        self._rows = empty(_ROWS)
        self._version = 0

    def note(self, name: str, lines: bytes) -> None:
        """Keeps acknowledged lines of a file, to be parsed when they are asked for."""
        with self._noting:
            whole = self._lines.get(name, b"") + lines
            if name in self._lines.dropped or len(whole) > UNREAD_BYTES:
                self._lines.pop(name, None)
                self._lines.dropped.add(name)
            else:
                self._lines[name] = whole

    def observations(self, now: datetime) -> InboxObservations:
        """The observations in the inbox at this time, within the limits."""
        with self._lock:
            lines = self._take_lines()
            files, others = _files(self._inbox)
            found = {file.name: file for file in files}
            gone = {name for name, file in self._known.items() if found.get(name) != file}
            again = lines.keys() | lines.dropped | (self._unread | self._cut.keys() if gone else set())
            fresh = [file for file in files if self._known.get(file.name) != file or file.name in again]
            if gone or fresh:
                self._known = found
                self._unread &= found.keys()
                self._cut = {name: scopes for name, scopes in self._cut.items() if name in found}
                self._rows = self._rows.filter(~pl.col("_file").is_in(sorted(gone)))
                self._read(fresh, lines, now)
                self._version += 1
            cut = frozenset[str]().union(*self._cut.values())
            return InboxObservations(self._rows.select(*EVIDENCE), cut, not (others or self._unread), self._version)

    def _take_lines(self) -> _Lines:
        """The lines kept since last time."""
        with self._noting:
            lines, self._lines = self._lines, _Lines()
        return lines

    def _read(self, fresh: list[_File], lines: _Lines, now: datetime) -> None:
        """Reads files, the newest first, and drops what is beyond the limits."""
        newest = sorted(self._known.values(), key=lambda file: file.at, reverse=True)
        sizes = accumulate(file.size for file in newest)
        within = {file.name for file, size in zip(newest, sizes, strict=True) if size <= FILES_BYTES}
        self._unread |= self._known.keys() - within
        self._keep(self._rows.filter(pl.col("_file").is_in(sorted(within))))
        for file in sorted(fresh, key=lambda file: file.at, reverse=True):
            if file.name in within:
                self._unread.discard(file.name)
                self._cut.pop(file.name, None)
                self._add(file, lines.get(file.name), now)

    def _add(self, file: _File, lines: bytes | None, now: datetime) -> None:
        """Adds the rows of a file, batch by batch; none of one that is gone or damaged."""
        if lines is not None:
            self._add_rows(list(line_rows([lines], self._longest)), file, now)
            return
        try:
            with open_dump(self._inbox / file.name, self._longest, follow=False) as dump:
                if dump.format != OBSERVATIONS:
                    self._unread.add(file.name)
                    return
                for rows in dump.batches(_BATCH_ROWS, _BATCH_BYTES):
                    self._add_rows(rows, file, now)
        except UnreadableDump:
            return

    def _add_rows(self, rows: list[RawRow], file: _File, now: datetime) -> None:
        """Adds the rows that a run would accept, as evidence of the time when the file was written."""
        records = validate_batch(rows, Rules(GLOBAL_SCOPE, clock_at(now, self._settings)), self._longest).records
        fresh = evidence_frame(records, file.moment, "").with_columns(_file=pl.lit(file.name))
        every = pl.concat([self._rows, fresh]).unique(_KEY, keep="first", maintain_order=True)
        self._keep(every.sort("imported_at", descending=True, maintain_order=True))

    def _keep(self, rows: pl.DataFrame) -> None:
        """Keeps each scope's share of rows, and notes of which files and scopes others were dropped."""
        self._rows = fair_share(rows, row_bytes())
        dropped = rows.join(self._rows, on=_KEY, how="anti").group_by("_file").agg(pl.col("scope").unique())
        for name, scopes in dropped.iter_rows():
            self._cut[name] = self._cut.get(name, frozenset()) | frozenset(scopes)


def _files(inbox: Path) -> tuple[list[_File], bool]:
    """The JSON Lines files of an inbox, and whether it has dumps of other kinds."""
    try:
        with os.scandir(inbox) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        return [], False
    files = [file for entry in shown if entry.name.endswith(".jsonl") and (file := _file(entry)) is not None]
    others = (entry for entry in shown if not entry.name.endswith((".jsonl", ".tmp", ".part")))
    return files, any(entry.is_file() for entry in others)


def _file(entry: os.DirEntry[str]) -> _File | None:
    try:
        state = entry.stat()
    except FileNotFoundError:
        return None
    written = written_at(entry.name)
    return _File(entry.name, state.st_mtime_ns if written is None else written, state.st_size)
