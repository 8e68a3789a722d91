"""The snapshots in the folder of a replica: each is fetched whole, or is not there.

Invariant: what has a number for its name has every file that its manifest names, each with its digest when it was
fetched. One process changes them at a time; the caller holds the lock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import ValidationError
from msgspec import json as msgjson

from memstate_core.model.errors import SourceUnreachable
from memstate_core.serve.replica.object_cache import ObjectCache
from memstate_core.state.files import file_digest, make_folder, sync_path
from memstate_core.state.home import Home
from memstate_core.state.snapshots import MANIFEST, SCHEMA_VERSION, Manifest, Snapshot
from memstate_core.storage.published import Entry
from memstate_core.storage.storage import Storage


class FetchedSnapshots:
    """The snapshots of a replica.

    Args:
        home: the folder of the replica.
        cache: its objects, which snapshots link to.
    """

    def __init__(self, home: Home, cache: ObjectCache) -> None:
        self._home, self._cache = home, cache

    def numbers(self, shard: str) -> list[int]:
        """The numbers of those of a shard, ascending."""
        folder = self._home.snapshots(shard)
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []

    def is_whole(self, shard: str, entry: Entry) -> bool:
        """Whether the snapshot of an entry is here, with all its files."""
        path = self._home.snapshots(shard) / str(entry.number)
        try:
            if file_digest(path / MANIFEST) != entry.manifest:
                return False
            return not Snapshot(path, _manifest((path / MANIFEST).read_bytes())).missing()
        except (OSError, ValidationError, ValueError):
            return False

    def fetch(self, place: Storage, shard: str, entry: Entry) -> None:
        """Makes the folder of a snapshot, which gets its name when all its files are there and flushed.

        Raises:
            SourceUnreachable: the source does not answer, lacks something, or has a snapshot of another version.
            DiskFull: the disk has no room.
        """
        if self.is_whole(shard, entry):
            return
        folder = self._home.snapshots(shard)
        draft, final = folder / f".{entry.number}.part", folder / str(entry.number)
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        self._bring(place, [entry.manifest])
        self._cache.link(entry.manifest, draft / "object")
        shutil.copyfile(draft / "object", draft / MANIFEST)  # its time is that of the snapshot
        (draft / "object").unlink()
        manifest = self._checked(place, shard, entry, (draft / MANIFEST).read_bytes())
        self._bring(place, manifest.files.values())
        for name, digest in manifest.files.items():
            self._cache.link(digest, draft / name)
        os.utime(draft / MANIFEST, (entry.written_at.timestamp(),) * 2)
        for path in [*(each for each in draft.rglob("*") if each.is_dir()), draft]:
            sync_path(path)
        if final.exists():  # of another copy of the store, or damaged
            shutil.rmtree(final)
        draft.rename(final)
        sync_path(folder)

    def keep(self, shard: str, kept: Collection[int]) -> None:
        """Removes the other snapshots, and CURRENT if none is left."""
        folder = self._home.snapshots(shard)
        if not kept:
            (folder / "CURRENT").unlink(missing_ok=True)
        for number in set(self.numbers(shard)) - set(kept):
            shutil.rmtree(folder / str(number))

    def remove_damaged(self, shard: str) -> None:
        """Removes snapshots with files that are not as they were fetched; every byte is read."""
        kept = [each for each in self.numbers(shard) if not is_damaged(self._home.snapshots(shard) / str(each))]
        self.keep(shard, kept)

    def _checked(self, place: Storage, shard: str, entry: Entry, content: bytes) -> Manifest:
        try:
            manifest = _manifest(content)
        except (ValidationError, ValueError) as error:
            raise SourceUnreachable(place.where, f"the manifest of {shard}/{entry.number}: {error}") from None
        if manifest.schema_version != SCHEMA_VERSION:
            problem = f"{shard}/{entry.number} has schema {manifest.schema_version}, expected {SCHEMA_VERSION}"
            raise SourceUnreachable(place.where, problem)
        wrong = [name for name in manifest.files if Path(name).is_absolute() or ".." in Path(name).parts]
        if (manifest.shard, manifest.number) != (shard, entry.number) or wrong:
            raise SourceUnreachable(place.where, f"the manifest is not that of {shard}/{entry.number}")
        return manifest

    def _bring(self, place: Storage, digests: Iterable[str]) -> None:
        problem = self._cache.bring(place, digests)
        if problem is not None:
            raise SourceUnreachable(place.where, problem)


def _manifest(content: bytes) -> Manifest:
    return msgjson.decode(content, type=Manifest)


def is_damaged(folder: Path) -> bool:
    """Whether a snapshot lacks its manifest, or has other files than that says; every byte is read."""
    try:
        return bool(Snapshot(folder, _manifest((folder / MANIFEST).read_bytes())).damage())
    except (OSError, ValidationError, ValueError):
        return True
