"""The local folder of a replica, laid out like a home with nothing but snapshots, and kept like what is published.

Invariant: CURRENT of the folder names a snapshot whose every file had its digest when it was fetched. Processes that
share the folder fetch one after another, and each sees what the others fetched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from msgspec import json as msgjson
from msgspec import structs

from memstate_core.model.errors import SourceUnreachable
from memstate_core.model.scope import Layout, is_shard
from memstate_core.serve.replica.fetched_snapshots import FetchedSnapshots
from memstate_core.serve.replica.held_shards import HeldShards
from memstate_core.serve.replica.object_cache import ObjectCache
from memstate_core.state.current import move_current
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home
from memstate_core.state.layout import remove_retired, write_layout
from memstate_core.state.lock import exclusive
from memstate_core.state.replica_note import ReplicaNote, read_replica_note
from memstate_core.storage.published import Published, StoreNote, read_current, read_note, shard_storage
from memstate_core.storage.purpose import SOURCE
from memstate_core.storage.storage import Storage, storage

_WAIT_SECONDS = 60.0


class Mirror:
    """The folder of a replica.

    Args:
        root: where the folders of replicas are.
        source: the address of what is published.
        limit: how many bytes of objects are kept beside those of the kept snapshots.

    Attributes:
        held: the shards that processes have open, where not all are.
    """

    def __init__(self, root: Path, source: str, limit: int) -> None:
        self.source = source
        self.home = Home(root / hashlib.sha256(source.encode()).hexdigest()[:16])
        self.held = HeldShards(self.home.root / "held")
        self._cache = ObjectCache(self.home.root / "cache", limit)
        self._snapshots = FetchedSnapshots(self.home, self._cache)

    @property
    def note(self) -> ReplicaNote | None:
        """What is known of the source; None before it was first read."""
        return read_replica_note(self.home)

    @property
    def layout(self) -> Layout:
        """The shards that are served; those of a store as it begins before the source was first read."""
        return Layout(1) if self.note is None else self.note.shard_layout

    def published(self) -> Layout:
        """The shards of the source, as it says, or as it said before if it does not answer.

        Raises:
            SourceUnreachable: it does not answer and never did, or nothing is published there.
            PublicationRefused: the address, or what is there, is not of a publication.
            CloudUnavailable: the package for object storage is missing.
        """
        said, known = self._said(), self.note
        return said.shard_layout if said is not None else (known or ReplicaNote(self.source, 1)).shard_layout

    def _said(self) -> StoreNote | None:
        """As `look`; None if the source does not answer now and did before."""
        try:
            return self.look()
        except SourceUnreachable:
            if self.note is None:
                raise
            return None

    def look(self) -> StoreNote:
        """What the source says about all shards now; errors as for `published`."""
        found = read_note(storage(self.source, SOURCE), SOURCE)
        if found is None:
            raise SourceUnreachable(self.source, "nothing is published there yet")
        return found[0]

    def learn(self, there: StoreNote) -> None:
        """Keeps what the source says about all shards; after an erasure, removes what no shard that is here has.

        Raises:
            StoreLocked: another process has been fetching for a minute.
        """
        said = {"writer": there.writer, "accepts": there.accepts_writes, "erased": there.erasures}
        if self.note is None or self.note == structs.replace(self.note, **said):
            return
        with self._locked():
            known = self.note or ReplicaNote(self.source, there.shards)
            if there.erasures > known.erased:
                self._erase()
            self._write(structs.replace(known, **said))

    def open(self) -> int:
        """The number of shards here, after what is here was compared with its digests; errors as for `published`.

        Snapshots with files that are not as they were fetched are removed, to be fetched again. Where the source has
        other shards now, those that are here are served until `switch`.
        """
        said, known = self._said(), self.note
        there = self.published() if said is None else said.shard_layout
        with self._locked():
            if known is None or not any(self._snapshots.numbers(shard) for shard in known.shard_layout.names):
                before = known or ReplicaNote(self.source, there.count)
                known = structs.replace(before, shards=there.count, layout=there.number)
                self._write(known)
            write_layout(self.home, known.shard_layout)
            for shard in known.shard_layout.names:
                self._snapshots.remove_damaged(shard)
        if said is not None:
            self.learn(said)
        return known.shards

    def has(self, shard: str) -> bool:
        """Whether a snapshot of a shard is here to be served."""
        return (self.home.snapshots(shard) / "CURRENT").is_file()

    def here(self) -> list[str]:
        """The shards of which something is here, in no order."""
        folder = self.home.snapshots("s0").parent
        return [path.name for path in folder.iterdir() if is_shard(path.name)] if folder.is_dir() else []

    def release(self) -> None:
        """Removes the snapshots of shards that no process holds; the cache keeps their objects up to its limit.

        Raises:
            StoreLocked: another process has been fetching for a minute.
        """
        if not any(self._is_free(shard) for shard in self.here()):
            return
        with self._locked():
            for shard in self.here():
                with self.held.alone(shard) as is_free:
                    if is_free:
                        self._release(shard)
            self._cache.evict()

    def _is_free(self, shard: str) -> bool:
        with self.held.alone(shard) as is_free:
            return is_free

    def _release(self, shard: str) -> None:
        """Removes a shard; which erasures it follows stays known, since the cache has objects of it."""
        note, erasures = self.note, self._erasures(shard)
        shutil.rmtree(self.home.snapshots(shard))
        if note is not None:
            accepting = [each for each in note.accepting if each != shard]
            self._write(structs.replace(note, erasures={**note.erasures, shard: erasures}, accepting=accepting))

    def switch(self, layout: Layout) -> None:
        """Serves other shards, all of which were fetched, in place of those before, and removes these."""
        with self._locked():
            note = self.note or ReplicaNote(self.source, layout.count)
            accepting = [shard for shard in note.accepting if shard in layout.names]
            erasures = {shard: number for shard, number in note.erasures.items() if shard in layout.names}
            self._write(
                structs.replace(note, shards=layout.count, layout=layout.number, accepting=accepting, erasures=erasures)
            )
            write_layout(self.home, layout)
            remove_retired(self.home, layout)
            self._cache.evict(all_unlinked=False)

    def follow(self, shard: str) -> bool:
        """Fetches what CURRENT of a shard names, if it is another one than here; whether anything changed.

        Raises:
            SourceUnreachable: the source does not answer, or lacks something, or has a snapshot of another version;
                what is here stays, unless there was an erasure since: then it is removed. If nothing is here, the
                snapshot before it is, where that can be fetched.
            PublicationRefused: CURRENT is not as it was written.
            StoreLocked: another process has been fetching for a minute.
            DiskFull: the disk has no room.
        """
        place = shard_storage(self.source, shard, SOURCE)
        found = read_current(place, SOURCE)
        if found is None and self._snapshots.numbers(shard):
            raise SourceUnreachable(place.where, "CURRENT is missing")
        published = Published(writer="" if self.note is None else self.note.writer) if found is None else found[0]
        if self._has(shard, published):
            return False
        with self._locked():
            if self._has(shard, published):
                return False
            return self._take(place, shard, published)

    def _take(self, place: Storage, shard: str, published: Published) -> bool:
        erased = published.erasures > self._erasures(shard)
        try:
            if published.served is not None:
                self._snapshots.fetch(place, shard, published.served)
        except BaseException:
            if erased:
                self._snapshots.keep(shard, [])
                self._erase()
            elif not self._snapshots.numbers(shard):
                self._take_earlier(place, shard, published)
            raise
        kept = {entry.number for entry in published.snapshots}
        # A server may become ready when CURRENT moves, and has to know then whether it takes writes.
        self._record(shard, structs.replace(published, erasures=self._erasures(shard)))
        if published.served is not None:
            move_current(self.home, shard, published.served.number)
        self._snapshots.keep(shard, [each for each in self._snapshots.numbers(shard) if each in kept])
        if erased:
            self._erase()
        self._cache.evict(all_unlinked=erased)
        self._record(shard, published)
        return True

    def _take_earlier(self, place: Storage, shard: str, published: Published) -> None:
        """Fetches a snapshot before the served one where nothing is here, such as one of this version of memstate."""
        for entry in published.snapshots[1:]:
            with suppress(SourceUnreachable):
                self._snapshots.fetch(place, shard, entry)
                self._record(shard, published)
                move_current(self.home, shard, entry.number)
                return

    def _has(self, shard: str, published: Published) -> bool:
        """Whether what is published is here, with all its files."""
        note, entry = self.note, published.served
        if note is None or note != _noted(note, shard, published):
            return False
        if entry is None:
            return not self._snapshots.numbers(shard)
        current = self.home.snapshots(shard) / "CURRENT"
        return (
            self._snapshots.is_whole(shard, entry) and current.is_file() and current.read_text() == f"{entry.number}\n"
        )

    def _erase(self) -> None:
        """Has servers let go of what they hold open, as after an erasure in a home; removes unlinked objects."""
        self._cache.evict(all_unlinked=True)
        make_folder(self.home.erasures)
        os.utime(self.home.erasures)

    def _erasures(self, shard: str) -> int:
        """How many erasures everything that is here of a shard follows, what the cache has of it included."""
        note = self.note
        if note is None:
            return 0
        known = note.erasures.get(shard, 0)
        return known if self._snapshots.numbers(shard) else max(known, note.erased)

    def _record(self, shard: str, published: Published) -> None:
        self._write(_noted(self.note or ReplicaNote(self.source, 1), shard, published))

    def _write(self, note: ReplicaNote) -> None:
        make_folder(self.home.root)
        replace_file(self.home.replica, msgjson.encode(note))

    def _locked(self) -> AbstractContextManager[None]:
        make_folder(self.home.root)
        return exclusive(self.home.root / "replica.lock", f"process {os.getpid()} (fetching)", _WAIT_SECONDS)


def _noted(note: ReplicaNote, shard: str, published: Published) -> ReplicaNote:
    """A note with what CURRENT of a shard says."""
    accepting = {*note.accepting, shard} if published.accepts_writes else {*note.accepting} - {shard}
    known = note.erasures.get(shard, 0) == published.erasures
    erasures = note.erasures if known else {**note.erasures, shard: published.erasures}
    return structs.replace(note, erasures=erasures, writer=published.writer, accepting=sorted(accepting))
