"""Brings a home to a state of the store at its URL.

Everything that differs is fetched and compared with its digest before anything is changed. Invariant: nothing that may
be the only copy is removed. Input that the state does not have waits for the next run again; files of the ledger that
the store never got, such as what a writer without its lease recorded, are set aside below `discarded`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from memstate_core.ingest.inbox import move_into
from memstate_core.ingest.unfinished import state_of
from memstate_core.model.errors import RemoteStoreDamaged
from memstate_core.model.progress import tracked
from memstate_core.night.backup.folder import escaped, place
from memstate_core.night.checkout.note import Note
from memstate_core.night.checkout.parts import Kind, kind_of, local_parts
from memstate_core.night.checkout.shards_here import shard_of
from memstate_core.night.erasure.files import clear_runs, remove_derived
from memstate_core.state.files import file_digest, link_or_copy, make_folder, require_space, sync_path
from memstate_core.state.home import LAYOUT, Home
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.lock import exclusive, holder_of
from memstate_core.storage.concurrent_requests import at_once
from memstate_core.storage.head import Contents, RemoteFile
from memstate_core.storage.objects import Objects
from memstate_core.storage.storage import blocks_of, copied

_STAGED, _SNAPSHOTS, _WORK = "checkout", "snapshots", "work"
_WAIT_SECONDS = 60.0


@dataclass
class Brought:
    """What bringing a home to a state did.

    Attributes:
        fetched: how many files came from the URL.
        fetched_bytes: their bytes.
        waiting: input that waits again, as paths below the home.
        discarded: where files of the ledger were set aside; None if there were none.
    """

    fetched: int = 0
    fetched_bytes: int = 0
    waiting: list[str] = field(default_factory=list)
    discarded: Path | None = None


def bring(
    home: Home,
    where: str,
    contents: Contents,
    note: Note,
    files: list[RemoteFile],
    *,
    erased: bool,
    check: bool = False,
    absent: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Brought:
    """Brings a home to a state; the caller holds the lock of the home. Repeating it completes what was interrupted.

    Args:
        home: the home.
        where: the URL.
        contents: what lies there.
        note: the note of the checkout, with the state that it had before.
        files: the files of the state.
        erased: whether an erasure lies between, so that what this machine derived or kept besides has to go.
        check: read every file of the home, so that one is found that changed and has the size and time it had.
        absent: the shards whose snapshots the home shall not have; what it has of them goes.
        only: the home has the state but for the snapshots of these shards, so nothing else is looked at.

    Raises:
        RemoteStoreDamaged: a content is missing at the URL, or has other bytes; nothing was changed.
        StoreUnreachable: the storage does not answer; nothing was changed.
        DiskFull: the disk has no room for what is new; nothing was changed.
    """
    wanted = [file for file in files if shard_of(file.path) not in absent]
    known = {file.sha256 for file in (*files, *note.files)}
    return _Bringing(home, where, contents, note, wanted, known, check).bring(erased, only)


class _Bringing:
    """One home on its way to one state."""

    def __init__(
        self,
        home: Home,
        where: str,
        contents: Contents,
        note: Note,
        wanted: list[RemoteFile],
        known: set[str],
        check: bool,
    ) -> None:
        self._home, self._where, self._contents, self._note, self._check = home, where, contents, note, check
        self._wanted = {place(file.path): file for file in wanted}
        self._before = {place(file.path): file for file in note.files}
        for path in [path for path in self._wanted.keys() | self._before.keys() if _is_in_use(home, path)]:
            self._wanted.pop(path, None)  # this home knows better what became of its nights
            self._before.pop(path, None)
        self._known = known
        self._digests: dict[Path, str] = {}
        self._done = Brought()

    def bring(self, erased: bool, only: Collection[str] | None) -> Brought:
        staged = self._home.work(_STAGED)
        shutil.rmtree(staged, ignore_errors=True)
        for draft in (self._home.root / _SNAPSHOTS).rglob(".*.part"):  # of a command that was killed
            draft.unlink()
        if erased:
            self._let_go()
        wanted = {path: file for path, file in self._wanted.items() if only is None or shard_of(file.path) in only}
        missing = {path: file for path, file in wanted.items() if self._digest(path) != file.sha256}
        try:
            fetched = self._stage(missing, staged)
            with exclusive(self._home.ledger / "ledger.lock", f"process {os.getpid()} (checkout)", _WAIT_SECONDS):
                parts = local_parts(self._home)
                found = [path for path in parts if only is None or shard_of(path.as_posix()) in only]
                for path in (each for each in found if each.parts[0] != _SNAPSHOTS):
                    self._clear(path)
                self._put({path: fetched[file.sha256] for path, file in missing.items()})
                for path in (each for each in found if each.parts[0] == _SNAPSHOTS):  # servers read them until now
                    self._clear(path)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return self._done

    def _digest(self, path: Path) -> str | None:
        """The digest of a file of the home, None if there is none; read only if its state is not a known one."""
        state = state_of(self._home.root / path)
        if state is None:
            return None
        for known in () if self._check else (self._wanted.get(path), self._before.get(path)):
            if known is not None and (known.size, known.modified) == (state.size, state.modified):
                return known.sha256
        if path not in self._digests:
            self._digests[path] = file_digest(self._home.root / path)
        return self._digests[path]

    def _stage(self, missing: Mapping[Path, RemoteFile], staged: Path) -> dict[str, Path]:
        """Gets the contents that are missing, each once, into a scratch folder; their places by digest."""
        needed = {file.sha256: file for file in missing.values()}
        make_folder(staged)
        require_space(staged, sum(file.size for file in needed.values()))
        here = {file.sha256: path for path, file in self._before.items() if file.sha256 in needed}
        here |= {digest: path for path, digest in self._read_input().items() if digest in needed}
        getting = at_once(lambda each: self._get(each, here.get(each.sha256), staged), needed.values())
        problems = tracked(getting, "fetch", len(needed), "files")
        if found := [problem for problem in problems if problem is not None]:
            raise RemoteStoreDamaged(self._where, found)
        return {digest: staged / digest for digest in needed}

    def _read_input(self) -> dict[Path, str]:
        """The digests of input in the home, since a run elsewhere may have moved it to another folder."""
        found = (path for path in local_parts(self._home) if kind_of(path) in (Kind.READ, Kind.WAITING))
        unsettled = (path for path in found if not self._is_settled(path))
        return {path: digest for path in unsettled if (digest := self._digest(path)) is not None}

    def _get(self, file: RemoteFile, here: Path | None, staged: Path) -> str | None:
        """Copies a content from the home, if it is there, else from the URL; returns what is wrong with it."""
        target = staged / file.sha256
        if here is not None and (self._home.root / here).is_file():
            digest, _ = copied(blocks_of(self._home.root / here), target)
            if digest == file.sha256:
                return None
        storage = self._contents.place(file)
        problem = Objects(storage).fetch(file.sha256, target)
        self._done.fetched += 1
        self._done.fetched_bytes += file.size
        return problem if problem is None else f"{file.path}: {storage.where}/{problem}"

    def _let_go(self) -> None:
        """Removes what may quote the subject of an erasure and is not a part of the store."""
        for path in self._note.settled:
            (self._home.root / place(path)).unlink(missing_ok=True)
        shutil.rmtree(self._home.discarded, ignore_errors=True)
        clear_runs(self._home.dagster)
        remove_derived(self._home)

    def _clear(self, path: Path) -> None:
        """Makes room where the state has no such file, or another one, without losing what is only here."""
        wanted, kind, file = self._wanted.get(path), kind_of(path), self._home.root / path
        if wanted is None and self._is_settled(path):
            return
        digest = self._digest(path)
        if digest is None or (wanted is not None and digest == wanted.sha256):
            return
        before = self._before.get(path)
        same_as_before = before is not None and before.sha256 == digest
        if kind in (Kind.WAITING, Kind.READ):
            self._clear_input(path, digest, gone=same_as_before, wanted=wanted is not None)
        elif kind is Kind.LEDGER and not same_as_before:
            self._set_aside(path, keep=wanted is not None)
        elif wanted is None and (same_as_before or kind is Kind.DERIVED):
            file.unlink()
            if path.parts[0] == _SNAPSHOTS:
                _remove_empty(file.parent, self._home.root)

    def _clear_input(self, path: Path, digest: str, *, gone: bool, wanted: bool) -> None:
        waits = kind_of(path) is Kind.WAITING
        if gone or (not waits and digest in self._known):
            (self._home.root / path).unlink()
        elif not waits or wanted:
            move_into(self._home.root / path, self._home.root / path.parts[0])
            self._done.waiting.append(str(path))

    def _is_settled(self, path: Path) -> bool:
        state = self._note.settled.get(escaped(path))
        return state is not None and state == state_of(self._home.root / path)

    def _set_aside(self, path: Path, *, keep: bool) -> None:
        """Sets a file aside; one that is about to be replaced stays until then."""
        if self._done.discarded is None:
            folders = (self._home.discarded / str(number) for number in count(1))
            self._done.discarded = next(folder for folder in folders if not folder.exists())
        target = self._done.discarded / path
        make_folder(target.parent)
        link_or_copy(self._home.root / path, target)
        if not keep:
            (self._home.root / path).unlink()

    def _put(self, staged: Mapping[Path, Path]) -> None:
        """Moves contents to their places: what names others comes after them, and CURRENT last."""
        for path in sorted(staged, key=_order):
            target, file = self._home.root / path, self._wanted[path]
            make_folder(target.parent)
            draft = target.with_name(f".{target.name[:200]}.part")
            shutil.copy(staged[path], draft)
            os.utime(draft, ns=(file.modified, file.modified))
            sync_path(draft)
            draft.replace(target)
        for folder in sorted({(self._home.root / path).parent for path in staged}):
            sync_path(folder)


def _is_in_use(home: Home, path: Path) -> bool:
    """Whether it is a note of a shard whose night has begun in this home, beside those of others."""
    shard = path.name.partition(".")[0]
    return path.parts[0] == _WORK and home.begun_night(shard).exists() and bool(holder_of(home.shard_lock(shard)))


def _order(path: Path) -> tuple[int, Path]:
    last = ("", CHAIN, "CURRENT", LAYOUT)
    return (last.index(path.name) if path.name in last else 0), path


def _remove_empty(folder: Path, root: Path) -> None:
    """Removes the folders of a snapshot that is gone."""
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
