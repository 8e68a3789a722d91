"""Captures one moment of a store for a backup, while runs, imports and servers go on.

Everything that could be changed or removed while a backup copies is linked or copied into a scratch folder first, under
the ledger's lock. While that is held, nothing is added to the ledger: an import does not commit, and a run does not
publish. So what is captured is what a kill at that moment would leave, with the unfinished run discarded:

- A snapshot counts as published if the ledger records it, and the newest one recorded is served.
- A file leaves the inbox after its rows are in the ledger. So one that is gone from the inbox is in the ledger or among
  the failed files, which are read afterwards.

What never changes is read from the home, without a lock: data and commits of the ledger, files that were read, reports.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from memstate_core.ingest.accesses.journal_segments import COMPLETE, OPEN
from memstate_core.ingest.api_files import written_at
from memstate_core.ingest.begun_files import INBOX, JOURNAL, notes_of
from memstate_core.ingest.dumps import dumps_in, shown
from memstate_core.ingest.unfinished import WallClock, complete
from memstate_core.model.errors import LedgerDamaged, SnapshotDamaged, StoreNotFound
from memstate_core.run.begin import last_published
from memstate_core.run.run import deaths_path, pending_path
from memstate_core.run.store import Store
from memstate_core.state.absent import unreadable
from memstate_core.state.current import move_current, named_number
from memstate_core.state.files import link_or_copy, make_folder
from memstate_core.state.home import Home
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.ledger.commits import LAST_CHECKPOINT
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.lock import exclusive
from memstate_core.state.snapshots import Snapshot, load_snapshot, numbers

_NAME = "backup"
_CLOCK = WallClock()


@dataclass(frozen=True)
class Captured:
    """One moment of a store.

    Attributes:
        home: the scratch folder, laid out like a home, with what may change in the home itself.
        snapshots: the kept snapshots, in the scratch folder.
        served: the snapshot of each shard that is served.
        left_out: files that are not captured, each with the reason.
    """

    home: Home
    snapshots: list[Snapshot]
    served: list[Snapshot]
    left_out: list[str]


@contextmanager
def no_capture(home: Home, holder: str) -> Iterator[None]:
    """Keeps (other) captures out for the length of the block, since one reads files of the ledger without its lock.

    Raises:
        StoreLocked: a backup of the home is in progress.
    """
    with exclusive(home.work(_NAME).with_suffix(".lock"), holder):
        yield


@contextmanager
def captured(
    store: Store, clock: WallClock = _CLOCK, name: str = _NAME, absent: Collection[str] = ()
) -> Iterator[Captured]:
    """Captures a store for the length of the block; there is one capture of a name at a time.

    Remains of an earlier one, left by a killed process, are removed first. A capture of another name than a backup's is
    not kept out of compactions, so its caller holds the store's lock.

    Args:
        store: the store.
        clock: for files that are still being written.
        name: what it is called.
        absent: shards whose snapshots are kept elsewhere; what they serve is read from the manifest alone.

    Raises:
        StoreNotFound: the home does not exist.
        StoreLocked: another backup of the home is in progress, or an import held the ledger's lock for too long.
        LedgerDamaged: the ledger lacks something that was acknowledged, or holds other bytes than were written.
        SnapshotDamaged: a served snapshot lacks a file.
    """
    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    root, holder = store.home.work(name), f"process {os.getpid()} (memstate {name})"
    with exclusive(root.with_suffix(".lock"), holder):
        shutil.rmtree(root, ignore_errors=True)
        try:
            make_folder(root)
            yield _capture(store, Home(root), holder, clock, absent)
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _capture(store: Store, target: Home, holder: str, clock: WallClock, absent: Collection[str]) -> Captured:
    home = store.home
    dumps = dumps_in(home.inbox) if home.inbox.is_dir() else []
    whole = set(complete(dumps, store.settings.ingest.inbox_settle_seconds, clock))
    store.ledger.chain.require_sound(tables=("transitions",))
    found = Captured(target, [], [], [])
    with ExitStack() as held:
        if home.ledger.is_dir():
            held.enter_context(store.ledger.writing(holder))
        for name in (CHAIN, *(f"{table}/{LAST_CHECKPOINT}" for table in TABLES)):
            _copy(home.ledger / name, target.ledger / name)
        _copy(home.layout, target.layout)
        for shard in store.shards:
            (_absent_snapshots if shard in absent else _snapshots)(store, shard, found)
        _inbox(home, whole, found)
        _journal(home, target)
        _notes(store, target)
        _questions(store, target)
    return found


def _snapshots(store: Store, shard: str, found: Captured) -> None:
    """Links the recorded snapshots of a shard; one that a run is removing is left out."""
    recorded = last_published(store, shard) or 0
    _require_recorded(store, shard, recorded)
    for number in numbers(store.home, shard):
        if number > recorded:  # not published yet
            continue
        source = store.home.snapshots(shard) / str(number)
        for file in files_below(source):
            _link(file, found.home.snapshots(shard) / str(number) / file.relative_to(source))
        try:
            snapshot = _whole(store.home, found.home, shard, number)
        except SnapshotDamaged as error:
            if number == recorded:
                raise
            shutil.rmtree(found.home.snapshots(shard) / str(number), ignore_errors=True)
            found.left_out.append(f"snapshots/{shard}/{number}: {error.facts['problems'][0]}")
            continue
        found.snapshots.append(snapshot)
        if number == recorded:
            store.ledger.chain.require_sound(snapshot.manifest.ledger_head, tables=())
            move_current(found.home, shard, recorded)
            found.served.append(snapshot)


def _absent_snapshots(store: Store, shard: str, found: Captured) -> None:
    """What a shard serves whose files are kept elsewhere, as its manifest and the ledger say."""
    recorded = last_published(store, shard) or 0
    _require_recorded(store, shard, recorded)
    if recorded in numbers(store.home, shard):
        snapshot = load_snapshot(store.home, shard, recorded)
        store.ledger.chain.require_sound(snapshot.manifest.ledger_head, tables=())
        found.served.append(snapshot)


def _require_recorded(store: Store, shard: str, recorded: int) -> None:
    """Refuses a ledger that lacks the snapshot which CURRENT names; a later one than it names is served."""
    named = 0
    with suppress(SnapshotDamaged):
        named = named_number(store.home, shard) or 0
    if named > recorded:
        lost = f"transitions: {shard}/{named} is served, the last snapshot on record is {recorded or 'none'}"
        raise LedgerDamaged(str(store.home.ledger), [lost])


def _whole(home: Home, target: Home, shard: str, number: int) -> Snapshot:
    snapshot = load_snapshot(target, shard, number)
    if missing := snapshot.missing():
        raise unreadable(home, snapshot.name, [f"{name} is missing" for name in missing])
    return snapshot


def _inbox(home: Home, whole: set[Path], found: Captured) -> None:
    """Links the dumps that are complete: those seen before the lock, and what servers write in one step."""
    for path in dumps_in(home.inbox, links=True) if home.inbox.is_dir() else []:
        if not path.is_symlink() and (path in whole or written_at(path.name) is not None):
            _link(path, found.home.inbox / path.name)
        else:
            reason = "it is a symbolic link" if path.is_symlink() else "it was still being written"
            found.left_out.append(f"inbox/{shown(Path(path.name))}: {reason}")


def _journal(home: Home, target: Home) -> None:
    """Links complete segments and copies open ones, of which everything that was acknowledged is on disk."""
    for path in sorted(home.accesses.iterdir()) if home.accesses.is_dir() else []:
        if path.is_symlink() or path.name.startswith("."):
            continue
        if path.suffix == OPEN and not _copy(path, target.accesses / path.name):
            path = path.with_suffix(COMPLETE)  # it was completed meanwhile
        if path.suffix == COMPLETE:
            _link(path, target.accesses / path.name)


def _notes(store: Store, target: Home) -> None:
    """Copies what failed runs and imports left for the next run; a note on a file being read is of no use there."""
    begun = {notes_of(store.home.imports, name)[0] for name in (INBOX, JOURNAL)}
    for shard in store.shards:
        work = store.home.work(shard)
        for path in (pending_path(work), deaths_path(work)):
            _copy(path, target.work(shard).with_name(path.name))
    for path in sorted(store.home.imports.iterdir()) if store.home.imports.is_dir() else []:
        if path not in begun and path.is_file() and not path.name.startswith("."):
            _copy(path, target.imports / path.name)


def _questions(store: Store, target: Home) -> None:
    """Copies the questions that nights are asked: those recorded, to which servers append, and the file in the home."""
    for path in files_below(store.home.recorded_questions):
        _copy(path, target.recorded_questions / path.name)
    given = store.settings.recall.questions
    if given and (path := (store.home.root / given).resolve()).is_relative_to(store.home.root.resolve()):
        _copy(path, target.root / path.relative_to(store.home.root.resolve()))


def files_below(folder: Path) -> Iterator[Path]:
    """The files below a folder, sorted within each; none where there is no folder, or where one vanishes."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(parent) / name for name in sorted(names))


def _link(source: Path, target: Path) -> None:
    """Links a file, unless it was moved or removed meanwhile."""
    make_folder(target.parent)
    if not target.exists():
        with suppress(FileNotFoundError):
            link_or_copy(source, target)


def _copy(source: Path, target: Path) -> bool:
    """Copies a file; returns whether there is one."""
    if not source.exists():
        return False
    make_folder(target.parent)
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return False
    return True
