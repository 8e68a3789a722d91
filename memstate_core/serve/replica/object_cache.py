"""Fetched objects on the local disk, by digest: checked, shared by the processes of a machine, bounded in bytes.

Snapshots are hard links to objects, so what is served takes no place twice and is never evicted.

Invariant: an object gets its name when all its bytes are there and have its digest. One process changes the cache at a
time; the caller holds the lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memstate_core.state.files import file_digest, link_or_copy, make_folder, require_space
from memstate_core.storage.concurrent_requests import at_once
from memstate_core.storage.objects import Objects
from memstate_core.storage.storage import Storage, object_name

_DRAFT = ".part"


class ObjectCache:
    """The objects of one replica.

    Args:
        root: the folder.
        limit: how many bytes of objects are kept beside those that snapshots link to.
    """

    def __init__(self, root: Path, limit: int) -> None:
        self._root, self._limit = root, limit

    def bring(self, place: Storage, digests: Iterable[str]) -> str | None:
        """Fetches the objects of some digests that are not here and sound, several at a time.

        Returns:
            What is wrong with one of them at its source; None if nothing is.

        Raises:
            SourceUnreachable: the source does not answer.
            DiskFull: the disk has no room for them.
            OSError: a file cannot be written.
        """
        problems = at_once(lambda digest: self._fetch(place, digest), sorted(set(digests)))
        return next((problem for problem in problems if problem is not None), None)

    def link(self, sha256: str, target: Path) -> None:
        """Makes a file of an object that was brought.

        Raises:
            OSError: the file cannot be written.
        """
        path = self._root / object_name(sha256)
        make_folder(target.parent)
        link_or_copy(path, target)
        os.utime(path)

    def evict(self, *, all_unlinked: bool = False) -> None:
        """Removes unlinked objects, those used longest ago first, down to the limit; or all of them."""
        unlinked = sorted(
            (status.st_mtime_ns, path, status.st_size)
            for path in self._root.rglob("*")
            if path.is_file() and (status := path.stat()).st_nlink == 1
        )
        size, limit = sum(each[2] for each in unlinked), 0 if all_unlinked else self._limit
        for _, path, each in unlinked:
            if size <= limit and path.suffix != _DRAFT:
                continue
            path.unlink()
            size -= each

    def _fetch(self, place: Storage, sha256: str) -> str | None:
        path = self._root / object_name(sha256)
        if path.is_file() and file_digest(path) == sha256:
            return None
        make_folder(path.parent)
        require_space(path.parent, 0)
        draft = path.with_name(path.name + _DRAFT)
        problem = Objects(place).fetch(sha256, draft)
        if problem is None:
            draft.replace(path)
        return problem
