"""The inbox: dumps dropped into a folder are imported once and moved away, never deleted or overwritten.

Invariant: a file is moved only after its rows are committed to the ledger. After a crash between the two, the next
run imports the file again, which changes nothing, and moves it then. A file is read when it is complete; one that grows
after it was moved returns.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

from memstate_core.ingest import unreported
from memstate_core.ingest.api_files import make_key, read_key
from memstate_core.ingest.begun_files import DEATHS, INBOX, BegunFiles, why_set_aside
from memstate_core.ingest.containers.compression import MAGIC
from memstate_core.ingest.divided_files import divide
from memstate_core.ingest.dumps import dumps_in, shown
from memstate_core.ingest.importer import Importer
from memstate_core.ingest.moved_files import MovedFiles
from memstate_core.ingest.report import ImportReport
from memstate_core.ingest.unfinished import FileState, WallClock, complete, state_of, unfinished
from memstate_core.ingest.unread_folders import unread_folders
from memstate_core.policy.settings import Settings
from memstate_core.state.files import make_folder
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger

_CLOCK = WallClock()
_LONGEST_STEM = 200
"""Bytes of a file's name that are kept where a number is added; file systems allow 255 for the whole name."""


def import_inbox(
    home: Home, ledger: Ledger, settings: Settings, *, now: datetime, run_id: str, clock: WallClock = _CLOCK
) -> ImportReport:
    """Imports the files of the inbox into the ledger, and moves each to `processed` or `failed`.

    A file that cannot be read to its end goes to `failed`; the rows before the damage are kept. So does a symbolic
    link, which is not followed, and a file with which two processes died; if a server wrote it, it is divided until
    only the fatal rows are left. A file that is being written, or changed while it was read, stays for the next run.

    Args:
        home: the home of the inbox; folders below it, hidden files, *.tmp and *.part are ignored.
        ledger: receives evidence and refusals.
        settings: the home's settings.
        now: the time of the import, UTC.
        run_id: the run id of the rows.
        clock: the machine's clock, which says when a file changed last.

    Raises:
        StoreLocked: another process held the ledger's lock for longer than the timeout.
    """
    key, moved = read_key(home.inbox_key), MovedFiles(home)
    importer = Importer(ledger, settings, now=now, run_id=run_id, follow_links=False, api_key=key)
    _return_grown(home, moved, clock)
    found = dumps_in(home.inbox, links=True) if home.inbox.is_dir() else []
    files = complete(found, settings.ingest.inbox_settle_seconds, clock)
    if not files:
        return importer.report()
    importer.load()
    before: deque[tuple[Path, FileState | None]] = deque()
    with BegunFiles(home.imports, INBOX) as begun:
        files = _divided(home, files, begun)
        files = _without_fatal(home, files, importer, begun, run_id)
        for report in importer.read_files(_with_state(files, before), begun):
            path, state = before.popleft()
            begun.end(path)
            if state is not None and state_of(path) == state:
                folder = home.processed if report.error is None else home.failed
                move_into(path, folder, partial(moved.add, size=state.size, at=clock.now()))
    return importer.report()


def _divided(home: Home, files: list[Path], begun: BegunFiles) -> list[Path]:
    """The files, with pieces in place of those files of the API with which processes died."""
    found: list[Path] = []
    for path in files:
        pieces = divide(path, make_key(home.inbox_key)) if begun.deaths(path) >= DEATHS else []
        if pieces:
            begun.suspect(pieces)
            begun.forget(path)
            move_into(path, home.processed)
        found.extend(pieces or [path])
    return found


def _without_fatal(home: Home, files: list[Path], importer: Importer, begun: BegunFiles, run_id: str) -> list[Path]:
    """Moves the files with which processes died to `failed`, once a report names them; returns the others."""
    fatal = {path: deaths for path in files if (deaths := begun.deaths(path)) >= DEATHS}
    for path, deaths in fatal.items():
        importer.fail(why_set_aside(path, deaths, "inbox/failed"), path)
    if fatal:
        unreported.keep(home.imports, run_id, importer.report())
    for path in fatal:
        begun.forget(path)
        move_into(path, home.failed)
    return [path for path in files if path not in fatal]


def waiting(home: Home, settings: Settings, clock: WallClock = _CLOCK) -> tuple[list[Path], list[Path]]:
    """The files that an import would read now, and those that are still being written.

    Among the former are files that grew after they were moved.
    """
    found = dumps_in(home.inbox, links=True) if home.inbox.is_dir() else []
    open_files = unfinished(found, settings.ingest.inbox_settle_seconds, clock)
    return [*MovedFiles(home).grown(), *(path for path in found if path not in open_files)], open_files


def failed_files(home: Home) -> list[str]:
    """The files that could not be read and wait for somebody to deal with them, as paths below the home.

    Hidden files are left out: file managers put some into every folder that they show.
    """
    folders = (folder for folder in (home.failed, home.failed_accesses) if folder.is_dir())
    found = (path for folder in folders for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(shown(path.relative_to(home.root)) for path in found)


def folder_warnings(home: Home) -> list[str]:
    """What to do about each folder in the inbox that holds files; a run reads the inbox alone."""
    advice = "is a folder, which no run reads: move its files into the inbox, or import it with `memstate import`"
    found = unread_folders(home.inbox, {home.processed, home.failed})
    return [f"{shown(path.relative_to(home.root))} {advice}" for path in found]


def _return_grown(home: Home, moved: MovedFiles, clock: WallClock) -> None:
    """Moves files that grew back into the inbox."""
    grown = moved.grown()
    for path in grown:
        move_into(path, home.inbox)
    moved.forget(grown, clock.now())


def _with_state(files: Iterable[Path], states: deque[tuple[Path, FileState | None]]) -> Iterator[Path]:
    """The files; the state of each is recorded just before it is read, in the order of the reports."""
    for path in files:
        states.append((path, state_of(path)))
        yield path


def move_into(path: Path, folder: Path, before: Callable[[Path], None] | None = None) -> None:
    """Moves a file into a folder of the same file system, under its name or a numbered one if that is taken.

    Args:
        path: the file.
        folder: the folder.
        before: called with the place that the file is about to get.
    """
    make_folder(folder)
    place = _free_name(folder / path.name)
    if before is not None:
        before(place)
    path.rename(place)


def _free_name(wanted: Path) -> Path:
    """The path itself, or with the first free number before its suffixes: `a.jsonl.gz`, `a.2.jsonl.gz`."""
    if not os.path.lexists(wanted):
        return wanted
    packing = wanted.suffix if wanted.suffix.lower() in MAGIC and wanted.with_suffix("").suffix else ""
    plain = Path(wanted.name.removesuffix(packing))
    stem = os.fsencode(plain.stem)[:_LONGEST_STEM].decode("utf-8", "ignore")
    numbered = (wanted.with_name(f"{stem}.{n}{plain.suffix}{packing}") for n in count(2))
    return next(path for path in numbered if not os.path.lexists(path))
