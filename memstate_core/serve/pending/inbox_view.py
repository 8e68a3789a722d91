"""Observations that wait in the inbox, as evidence: what this process has acknowledged and what others have put there.

The folder is the truth: an acknowledged write lies there until a run has it safe in the ledger, so what is read
here is all that was acknowledged, also after a restart. The lines of this process are kept in memory until they
are read, so that no file of its own is read back. Nothing happens here before somebody asks.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import polars as pl

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
from memstate_core.serve.inbox_writer import PREFIX
from memstate_core.serve.observations import clock_at

ROWS_LIMIT = 5_000
BYTES_LIMIT = 16 << 20
"""How many observations are kept, and how many bytes of files they may come from; the newest files first."""

_WAITING = {**EVIDENCE, "_file": pl.String}
_KEY = ["scope", "observation_id", "_file"]
_DIGITS = 20


@dataclass(frozen=True)
class InboxObservations:
    """What waits.

    Attributes:
        rows: columns EVIDENCE, the newest first. Where no time of observation was given, the time of acceptance
            stands for it.
        complete: whether that is all; False where a limit, or the kind of a dump, left something out.
        version: differs from that of every other content of this inbox.
    """

    rows: pl.DataFrame
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
    """The waiting observations of one inbox, for several threads."""

    def __init__(self, inbox: Path, settings: Settings) -> None:
        self._inbox, self._settings = inbox, settings
        self._longest = settings.ingest.max_line_mib << 20
        self._lock, self._noting = threading.Lock(), threading.Lock()
        self._noted: OrderedDict[str, bytes] = OrderedDict()
        self._dropped: set[str] = set()
        self._held = 0
        self._known: dict[str, _File] = {}
        self._cut: set[str] = set()
        self._rows = empty(_WAITING)
        self._version = 0

    def note(self, name: str, lines: bytes) -> None:
        """Takes note of lines that were acknowledged as part of a file; costs no more than that."""
        with self._noting:
            self._noted[name] = self._noted.get(name, b"") + lines
            self._held += len(lines)
            while self._held > BYTES_LIMIT:
                oldest, dropped = self._noted.popitem(last=False)
                self._dropped.add(oldest)
                self._held -= len(dropped)

    def observations(self, now: datetime) -> InboxObservations:
        """What waits at this moment, as far as the limits allow."""
        with self._lock:
            noted, dropped = self._take_noted()
            files, others = _files(self._inbox)
            found = {file.name: file for file in files}
            gone = {name for name, file in self._known.items() if found.get(name) != file}
            again = noted.keys() | dropped | (self._cut if gone else set())
            fresh = [file for file in files if self._known.get(file.name) != file or file.name in again]
            if gone or fresh:
                self._known, self._cut = found, self._cut & found.keys()
                self._rows = self._rows.filter(~pl.col("_file").is_in(sorted(gone)))
                self._read(fresh, noted, now)
                self._version += 1
            return InboxObservations(self._rows.select(*EVIDENCE), not (others or self._cut), self._version)

    def _take_noted(self) -> tuple[dict[str, bytes], set[str]]:
        """The lines noted since last time, by file, and the files of which some could not be held."""
        with self._noting:
            noted, dropped = self._noted, self._dropped
            self._noted, self._dropped, self._held = OrderedDict(), set(), 0
        return {name: lines for name, lines in noted.items() if name not in dropped}, dropped

    def _read(self, fresh: list[_File], noted: dict[str, bytes], now: datetime) -> None:
        """Reads files, the newest first, and lets go of what lies beyond the limits."""
        newest = sorted(self._known.values(), key=lambda file: file.at, reverse=True)
        held = accumulate(file.size for file in newest)
        within = [file.name for file, size in zip(newest, held, strict=True) if size <= BYTES_LIMIT]
        frames, room = [self._rows.filter(pl.col("_file").is_in(within))], ROWS_LIMIT
        self._cut |= _let_go(self._rows, frames[0])
        for file in sorted(fresh, key=lambda file: file.at, reverse=True):
            rows = self._rows_of(file, noted.get(file.name)) if file.name in within and room > 0 else None
            if rows is None:
                self._cut.add(file.name)
                continue
            self._cut.discard(file.name)
            frames.append(self._evidence(rows, file, now))
            room -= len(rows)
        told = pl.concat(frames).unique(_KEY, keep="first", maintain_order=True)
        self._rows = told.sort("imported_at", descending=True, maintain_order=True).head(ROWS_LIMIT)
        self._cut |= _let_go(told, self._rows)

    def _rows_of(self, file: _File, lines: bytes | None) -> list[RawRow] | None:
        """The rows of a file of observations, none of one that is gone or damaged; None if it holds chats."""
        if lines is not None:
            return list(line_rows([lines], self._longest))
        try:
            with open_dump(self._inbox / file.name, self._longest, follow=False) as dump:
                is_meant = dump.format == OBSERVATIONS
                return next(dump.batches(ROWS_LIMIT, BYTES_LIMIT), []) if is_meant else None
        except UnreadableDump:
            return []

    def _evidence(self, rows: list[RawRow], file: _File, now: datetime) -> pl.DataFrame:
        """Rows that a run would take, as evidence that was accepted when the file was written."""
        records = validate_batch(rows, Rules(GLOBAL_SCOPE, clock_at(now, self._settings)), self._longest).records
        return evidence_frame(records, file.moment, "").with_columns(_file=pl.lit(file.name))


def _let_go(before: pl.DataFrame, after: pl.DataFrame) -> set[str]:
    """The files of which rows were let go."""
    return set(before.join(after, on=_KEY, how="anti")["_file"])


def _files(inbox: Path) -> tuple[list[_File], bool]:
    """The JSON Lines files of an inbox, and whether dumps of other kinds wait beside them."""
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
    return _File(entry.name, _written_at(entry.name, state.st_mtime_ns), state.st_size)


def _written_at(name: str, changed: int) -> int:
    """When a file was written, in nanoseconds; the names that this server gives tell it."""
    digits = name.removeprefix(PREFIX).partition("-")[0]
    return int(digits) if name.startswith(PREFIX) and digits.isdecimal() and len(digits) == _DIGITS else changed
