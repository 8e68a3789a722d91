"""Publishes the served snapshots of a store to a URL: objects first, then CURRENT by a conditional put, then removal.

What a killed publisher sent stays without a name, and is used or removed by the next one. What the store no longer
keeps, such as snapshots from before an erasure, is named by no CURRENT any more and removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from msgspec import json as msgjson

from memstate_core.model.errors import PublicationConflict, SnapshotDamaged
from memstate_core.model.progress import tracked
from memstate_core.model.scope import Layout, is_shard
from memstate_core.night.checkout.session import commit_now
from memstate_core.night.publication.keys import publish_keys
from memstate_core.night.publication.note import note_outcome
from memstate_core.night.publication.store_note import erasures_begun, one_writer, require_place, write_note
from memstate_core.run.store import Store
from memstate_core.state.absent import unreadable
from memstate_core.state.current import current_snapshot
from memstate_core.state.files import file_digest
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_core.state.snapshots import MANIFEST, Manifest, Snapshot
from memstate_core.storage.concurrent_requests import at_once
from memstate_core.storage.objects import Objects
from memstate_core.storage.published import (
    CURRENT,
    Entry,
    Published,
    read_current,
    shard_storage,
)
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import OBJECTS, Storage, object_name, storage

KEPT = 2
"""Snapshots of a shard that stay at the URL: the served one, and the one that replicas may still be fetching."""

_WAIT_SECONDS = 600.0
_ATTEMPTS = 3


@dataclass(frozen=True)
class Outcome:
    """What was published of a shard.

    Attributes:
        shard: its name.
        snapshot: the name of the snapshot that CURRENT names now; None if the shard serves none.
        sent: how many objects were sent.
        sent_bytes: their bytes.
        removed: how many objects that no kept snapshot names were removed.
        moved: whether CURRENT moved.
    """

    shard: str
    snapshot: str | None
    sent: int
    sent_bytes: int
    removed: int
    moved: bool


def publish_to(
    store: Store, where: str, shards: Iterable[str] | None = None, *, take_over: bool = False, resend: bool = False
) -> list[Outcome]:
    """Publishes what shards serve to a URL; repeating it completes what was interrupted.

    A store that is kept at a URL gets its state there first, so that replicas never see what it does not have. Its
    machines may have different API keys, so those are published by `memstate publish` and `memstate keys` alone.

    Args:
        store: the store.
        where: a URL, or a folder.
        shards: some of its shards; all by default, and all where their number was changed since the last time.
        take_over: replace what another copy of the store published there.
        resend: send every object again, since what lies there may have other bytes than it should.

    Raises:
        PublicationRefused: the place holds other things, or a store of another number of shards.
        ConditionalPutsIgnored: nothing is there yet, and the storage could not keep publishers apart.
        PublicationUnreachable: the storage does not answer, or refuses; CURRENT of a shard has moved or not.
        PublicationConflict: another publisher was there first, or a newer snapshot is there; CURRENT was not moved.
            Or another copy of the store changed its number of shards.
        CloudUnavailable: the package for object storage is missing.
        KeysDamaged: the key file cannot be read; the snapshots are published, the keys are not.
        SnapshotDamaged: a served snapshot has other files than its manifest says; CURRENT was not moved.
        SnapshotAbsent: one of these shards is not on this machine; its CURRENT was not moved.
        StoreLocked: another process of this home has been publishing for ten minutes.
    """
    commit_now(store)
    found, layout = list[Outcome](), store.layout
    chosen = [*(layout.names if shards is None else shards)]
    with exclusive(store.home.work("publication").with_suffix(".lock"), _holder(), _WAIT_SECONDS):
        with note_outcome(store.home, where, chosen):
            found_note = require_place(store, where, layout, take_over=take_over)
        is_resharded = found_note[0].shard_layout != layout
        chosen = layout.names if is_resharded else chosen
        for shard in chosen:
            with note_outcome(store.home, where, [shard]) as noted:
                found.append(_publish(store, where, shard, take_over=take_over, resend=resend))
                noted.append(found[-1].snapshot)
        with note_outcome(store.home, where, chosen[:1]):
            write_note(store, where, found_note, whole=set(chosen) == set(layout.names))
            if is_resharded or shards is None:
                _remove_retired(where, layout)
            if not store.settings.store.url:
                publish_keys(store, where)
    return found


def _holder() -> str:
    return f"process {os.getpid()} (publishing)"


def _remove_retired(where: str, layout: Layout) -> None:
    """Removes what was published of shards that the store no longer has."""
    place, mark = storage(where, PUBLICATION), PUBLICATION.mark
    names = [name for name in place.sizes(mark) if len(parts := name.split("/")) > 2 and _is_retired(parts[1], layout)]
    place.remove(names)


def _is_retired(name: str, layout: Layout) -> bool:
    return is_shard(name) and name not in layout.names


def _publish(store: Store, where: str, shard: str, *, take_over: bool, resend: bool) -> Outcome:
    """Begins anew with the snapshot that is served now, if the one that was being sent is pruned meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            return _Publisher(store, where, shard, take_over).publish(resend)
        except FileNotFoundError as error:
            if attempt == _ATTEMPTS - 1:
                raise unreadable(store.home, shard, [f"{error.filename} is missing"]) from None
    raise AssertionError


def require_own(store: Store, where: str) -> None:
    """Refuses a URL to which another copy of the store published last, such as one that this was restored from.

    Raises:
        PublicationConflict: it did.
        PublicationRefused: what is there is no publication of this version.
        PublicationUnreachable: the storage does not answer, or refuses.
        CloudUnavailable: the package for object storage is missing.
    """
    for shard in store.shards:
        place = shard_storage(where, shard, PUBLICATION)
        _require_newest(store, shard, place, read_current(place, PUBLICATION))


def _require_newest(store: Store, shard: str, place: Storage, before: tuple[Published, str] | None) -> None:
    """Refuses to go back, or to replace a snapshot of the same number: both are of another copy of the store."""
    there, served = None if before is None else before[0].served, current_snapshot(store.home, shard)
    if there is None or (served is not None and there.number < served.manifest.number):
        return
    here = "no snapshot" if served is None else served.name
    if served is None or there.number > served.manifest.number or _entry(served).key != there.key:
        problem = f"its {shard}/{there.number} is not from here, where {here} is served"
        raise PublicationConflict(place.where, problem)


class _Publisher:
    """Publishes one shard once."""

    def __init__(self, store: Store, where: str, shard: str, take_over: bool) -> None:
        self._home, self._shard = store.home, shard
        self._place = shard_storage(where, shard, PUBLICATION)
        self._before = read_current(self._place, PUBLICATION)
        self._settings = store.settings.publish
        served = current_snapshot(store.home, shard)
        if not take_over:
            _require_newest(store, shard, self._place, self._before)
        self._kept = [] if served is None else [served, *self._earlier(served)]

    def publish(self, resend: bool) -> Outcome:
        there = set(self._place.sizes(OBJECTS))
        sent = self._send(resend)
        moved = self._move()
        again = self._send(resend=False)  # another publisher may have removed what had no name until now
        unused = there - {object_name(digest) for each in self._kept for digest in _digests(each).values()}
        self._place.remove(unused)
        name = self._kept[0].name if self._kept else None
        return Outcome(self._shard, name, len(sent + again), sum(sent + again), len(unused), moved)

    def _earlier(self, served: Snapshot) -> list[Snapshot]:
        """The newest snapshots at the URL before the served one that the store keeps as they are there."""
        entries = [] if self._before is None else self._before[0].snapshots
        found: list[Snapshot] = []
        for entry in entries:
            if entry.number < served.manifest.number and len(found) < KEPT - 1:
                found += _same(self._home, self._shard, entry)
        return found

    def _send(self, resend: bool) -> list[int]:
        """Sends the objects of the kept snapshots that are not there, several at a time; returns their sizes."""
        objects, missing = Objects(self._place), dict[str, tuple[Snapshot, str]]()
        for snapshot, name, digest in ((each, *file) for each in self._kept for file in _digests(each).items()):
            is_there = objects.has(digest, (snapshot.path / name).stat().st_size)
            if resend or not is_there:
                missing.setdefault(digest, (snapshot, name))

        def send(each: tuple[str, tuple[Snapshot, str]]) -> int:
            digest, (snapshot, name) = each
            found, size = objects.add(snapshot.path / name, digest)
            if found != digest:
                raise SnapshotDamaged(snapshot.name, [f"{name}: SHA-256 is {found}, expected {digest}"])
            return size

        return [*tracked(at_once(send, missing.items()), "publish", len(missing), "objects")]

    def _move(self) -> bool:
        """Moves CURRENT, unless it is as it should be."""
        document = Published(
            [_entry(each) for each in self._kept],
            erasures_begun(self._home),
            self._settings.writer_url,
            self._settings.accept_writes,
        )
        if self._before is None and not self._kept:
            return False
        if self._before is not None and self._before[0] == document:
            return False
        with one_writer(self._place, CURRENT):
            self._place.replace(CURRENT, msgjson.encode(document), None if self._before is None else self._before[1])
        return True


def unpublished_shards(store: Store, where: str) -> list[str]:
    """The shards whose served snapshot is not the one that CURRENT at a URL names.

    Raises:
        PublicationRefused: what is there is no publication of this version.
        PublicationUnreachable: the storage does not answer, or refuses.
        CloudUnavailable: the package for object storage is missing.
    """
    found = []
    for shard in store.shards:
        there = read_current(shard_storage(where, shard, PUBLICATION), PUBLICATION)
        served = current_snapshot(store.home, shard)
        entry = None if there is None else there[0].served
        if _key(entry) != _key(None if served is None else _entry(served)):
            found.append(shard)
    return found


def _digests(snapshot: Snapshot) -> dict[str, str]:
    """The digest of every file of a snapshot, its manifest the last."""
    return snapshot.manifest.files | {MANIFEST: file_digest(snapshot.path / MANIFEST)}


def _entry(snapshot: Snapshot) -> Entry:
    return Entry(snapshot.manifest.number, file_digest(snapshot.path / MANIFEST), snapshot.written_at())


def _key(entry: Entry | None) -> tuple[int, str] | None:
    return None if entry is None else entry.key


def _same(home: Home, shard: str, entry: Entry) -> list[Snapshot]:
    """The snapshot of an entry, if the store keeps it with this manifest and all its files.

    It may have the schema of the version before, which replicas of that version serve until they are replaced.
    """
    path: Path = home.snapshots(shard) / str(entry.number)
    try:
        snapshot = Snapshot(path, msgjson.decode((path / MANIFEST).read_bytes(), type=Manifest))
        return [snapshot] if file_digest(path / MANIFEST) == entry.manifest and not snapshot.missing() else []
    except (OSError, ValueError):
        return []
