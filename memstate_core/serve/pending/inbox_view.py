"""The observations in the inbox, as evidence: those acknowledged by this process and those that others put there.

The folder is the truth: an accepted observation stays there until a run has it durable in the ledger, so this view has
everything that was acknowledged, also after a restart. Lines accepted by this process are parsed from memory, so that
its own files are not read back. Nothing is parsed before a request asks for it or the lines become too many.

Invariant: of scopes within their share (`fair_share`) no row leaves because others write. Files that this process has
not read yet may wait for others, one request for each `FILES_BYTES`; they are not displaced.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl

from memstate_core.ingest.api_files import read_key, written_at
from memstate_core.ingest.bisection import guilty_rows
from memstate_core.ingest.dumps import open_dump, shown
from memstate_core.ingest.evidence_frame import evidence_frame
from memstate_core.ingest.formats import OBSERVATIONS
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.unforeseen import is_unforeseen, raises_unforeseen
from memstate_core.ingest.validation.batch import validate_batch
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.quantity import quantity
from memstate_core.model.scope import GLOBAL_SCOPE
from memstate_core.policy.settings import Settings
from memstate_core.serve.pending.fair_share import fair_share, row_bytes

_log = logging.getLogger("memstate.serve")

FILES_BYTES = 256 << 20
"""How many bytes of files one request reads, the newest files first; the next request continues. Rows that were read
stay, within the bounds of `fair_share`. A larger file is not read."""

UNPARSED_BYTES = 16 << 20
"""How many bytes of acknowledged lines are held before they are parsed, whether or not a request asks for them."""

_BATCH_ROWS, _BATCH_BYTES = 5_000, 16 << 20
_ATTEMPTS = 60
"""Attempts to find the rows of a batch that raise an unforeseen error; a request waits for them."""

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


class InboxView:
    """A thread-safe view of one inbox.

    Args:
        inbox: the folder.
        key: the file of the key that signs the files of the API.
        settings: the home's settings.
    """

    def __init__(self, inbox: Path, key: Path, settings: Settings) -> None:
        self._inbox, self._key, self._settings = inbox, key, settings
        self._longest = settings.ingest.max_line_mib << 20
        self._lock, self._noting = threading.Lock(), threading.Lock()
        self._lines: dict[str, bytes] = {}
        self._held = 0
        self._known: dict[str, _File] = {}
        self._due: set[str] = set()
        self._skipped: set[str] = set()
        self._cut: dict[str, frozenset[str]] = {}
        self._rows = empty(_ROWS)
        self._version = 0

    def note(self, name: str, lines: bytes, now: datetime) -> None:
        """Keeps acknowledged lines of a file, to be parsed when they are asked for or when they become too many."""
        with self._noting:
            self._lines[name] = self._lines.get(name, b"") + lines
            self._held += len(lines)
            is_full = self._held > UNPARSED_BYTES
        if is_full:
            with self._lock:
                self._update(now, reads=False)

    def observations(self, now: datetime) -> InboxObservations:
        """The observations in the inbox at this time, within the limits."""
        with self._lock:
            others = self._update(now, reads=True)
            cut = frozenset[str]().union(*self._cut.values())
            complete = not (others or self._skipped or self._due - self._cut.keys())
            return InboxObservations(self._rows.select(*EVIDENCE), cut, complete, self._version)

    def _update(self, now: datetime, *, reads: bool) -> bool:
        """Adds what is new and, if `reads`, not noted; returns whether the inbox has dumps of other kinds."""
        lines = self._take_lines()
        files, others = _files(self._inbox)
        found = {file.name: file for file in files}
        gone = {name for name, file in self._known.items() if found.get(name) != file}
        fresh = {file.name for file in files if self._known.get(file.name) != file}
        self._due = (self._due | fresh | (self._cut.keys() if gone else set())) & found.keys()
        if gone or self._due or lines:
            self._known = found
            self._skipped = (self._skipped & found.keys()) - fresh
            self._cut = {name: scopes for name, scopes in self._cut.items() if name in found}
            self._rows = self._rows.filter(~pl.col("_file").is_in(sorted(gone)))
            self._add_lines(lines, now)
            if reads:
                self._read(now)
            self._version += 1
        return others

    def _take_lines(self) -> dict[str, bytes]:
        """The lines kept since last time."""
        with self._noting:
            lines, self._lines, self._held = self._lines, {}, 0
        return lines

    def _add_lines(self, lines: dict[str, bytes], now: datetime) -> None:
        """Adds the rows of acknowledged lines, whose files need not be read then."""
        self._due -= lines.keys() - self._cut.keys()
        for name in lines.keys() & self._known.keys():
            self._add_rows(list(line_rows([lines[name]], self._longest)), self._known[name], now)

    def _read(self, now: datetime) -> None:
        """Reads files that are due, as many as fit the limit: those never read first, the newest first of each."""
        due = sorted((self._known[name] for name in self._due), key=lambda file: (file.name in self._cut, -file.at))
        unspent = FILES_BYTES
        for file in due:
            if file.size > FILES_BYTES:
                self._skipped.add(file.name)
            elif file.size > unspent:
                continue
            else:
                unspent -= file.size
                self._cut.pop(file.name, None)
                self._add(file, now)
            self._due.remove(file.name)

    def _add(self, file: _File, now: datetime) -> None:
        """Adds the rows of a file, batch by batch; none of one that is gone or damaged."""
        try:
            path, key = self._inbox / file.name, read_key(self._key)
            with open_dump(path, self._longest, api_key=key, follow=False) as dump:
                if dump.format != OBSERVATIONS:
                    self._skipped.add(file.name)
                    return
                for rows in dump.batches(_BATCH_ROWS, _BATCH_BYTES):
                    self._add_rows(rows, file, now)
        except UnreadableDump:
            return

    def _add_rows(self, rows: list[RawRow], file: _File, now: datetime) -> None:
        """Adds the rows that a run would accept, as evidence of the time when the file was written.

        Rows that raise an unforeseen error are left out, and the view is incomplete then.
        """
        try:
            fresh = self._fresh(rows, file, now)
        except BaseException as error:
            if not is_unforeseen(error):
                raise
            fresh = self._without_guilty(rows, file, now)
        every = pl.concat([self._rows, fresh]).unique(_KEY, keep="first", maintain_order=True)
        self._keep(every.sort("imported_at", descending=True, maintain_order=True))

    def _fresh(self, rows: list[RawRow], file: _File, now: datetime) -> pl.DataFrame:
        records = validate_batch(rows, Rules(GLOBAL_SCOPE, Clock.at(now, self._settings)), self._longest).records
        return evidence_frame(records, file.moment, "").with_columns(_file=pl.lit(file.name))

    def _without_guilty(self, rows: list[RawRow], file: _File, now: datetime) -> pl.DataFrame:
        def fails(some: list[RawRow]) -> bool:
            return raises_unforeseen(partial(self._fresh, some, file, now))

        guilty = guilty_rows(rows, fails, _ATTEMPTS)
        left_out = {id(row) for row in guilty}
        self._skipped.add(file.name)
        _log.warning("%s: %s cannot be read, so not pending", shown(Path(file.name)), quantity(len(guilty), "rows"))
        rest = [row for row in rows if id(row) not in left_out] if guilty else []
        return self._fresh(rest, file, now) if rest else empty(_ROWS)

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
        state = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    written = written_at(entry.name)
    return _File(entry.name, state.st_mtime_ns if written is None else written, state.st_size)
