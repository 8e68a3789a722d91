"""Backups in object storage: Amazon S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

Credentials come from the environment, as the libraries of these services read them; none is kept or shown.

Invariant: an object exists when all its bytes were sent and had the digest that names it. A killed writer leaves parts
of an upload at most, which have no name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.model.errors import BackupRefused, BackupUnreachable, CloudUnavailable
from memstate_core.night.backup.cloud_lock import CloudLock
from memstate_core.night.backup.storage import BLOCK, LISTS, LOCK, OBJECTS, Unreadable, blocks_of, object_name
from memstate_core.state.files import file_digest
from memstate_core.state.home import Home

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_NOISE = re.compile(r"\n\nDebug source.*|\?[^\s,]*|<RequestId>.*|<[^>]*>", re.DOTALL)
"""What follows the sentence of an error, and query strings, which may carry a signature."""


class CloudStorage:
    """The storage of a bucket, or of a prefix in it.

    Args:
        where: its URL.
        store: the object storage, opened at that prefix.
    """

    def __init__(self, where: str, store: ObjectStore) -> None:
        self.where = where
        self._store = store
        self.lock = CloudLock(store, where)

    def require_usable(self, _home: Home, /) -> None:
        """Refuses a prefix that holds other things; any home can be backed up there."""
        import obstore

        with self._reached():
            found = obstore.list_with_delimiter(self._store)
        names = {*found["common_prefixes"], *(each["path"] for each in found["objects"])}
        others = sorted(names - {LISTS, OBJECTS, LOCK})
        if others and LISTS not in names:
            raise BackupRefused(self.where, f"it holds other files, such as {others[0]}")

    def require_room(self, size: int) -> None:
        """There is always room."""

    @contextmanager
    def locked(self, home: Home, holder: str) -> Iterator[None]:
        """Holds the lock object."""
        with ExitStack() as held:
            with self._reached():
                held.enter_context(self.lock.held(home, holder))
            yield

    def sizes(self, folder: str) -> Mapping[str, int]:
        """The bytes of all objects below a prefix."""
        import obstore

        with self._reached():
            pages = obstore.list(self._store, prefix=folder)
            return {each["path"]: each["size"] for page in pages for each in page}

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of an object, as they arrive."""
        import obstore

        with self._reached():
            try:
                answer = obstore.get(self._store, name)
            except FileNotFoundError:
                raise Unreadable("is missing") from None
            yield from map(bytes, answer.stream(min_chunk_size=BLOCK))

    def write(self, name: str, content: bytes) -> None:
        """Writes an object, unless another process took the lock over meanwhile."""
        import obstore

        with self._reached():
            self.lock.require()
            obstore.put(self._store, name, content)

    def add(self, source: Path, expected: str | None) -> tuple[str, int]:
        """Sends a file under the digest that it has, which is computed again as it is sent."""
        import obstore

        digest, size = file_digest(source), source.stat().st_size
        if expected in (None, digest):
            with self._reached():
                self.lock.renew()
                obstore.put(self._store, object_name(digest), self._unchanged(source, digest))
        return digest, size

    def remove(self, names: Collection[str]) -> None:
        """Removes objects."""
        import obstore

        with self._reached(), suppress(FileNotFoundError):
            obstore.delete(self._store, sorted(names))

    def _unchanged(self, source: Path, digest: str) -> Iterator[bytes]:
        """The bytes of a file; an error at their end if they changed, so that nothing gets their name."""
        running = hashlib.sha256()
        for block in blocks_of(source):
            running.update(block)
            yield block
        if running.hexdigest() != digest:
            raise BackupUnreachable(self.where, f"{source} changed while it was sent")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns errors of the storage into ones of backups, without what might be a secret."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            raise BackupUnreachable(self.where, _shown(error)) from None


def cloud_storage(where: str) -> CloudStorage:
    """The storage of a URL.

    Raises:
        CloudUnavailable: the package obstore is missing.
        BackupUnreachable: the environment has no settings, or wrong ones, for this service.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise CloudUnavailable(where) from None
    try:
        store = from_url(where, retry_config={"max_retries": 5, "retry_timeout": timedelta(minutes=2)})
    except (BaseError, ValueError, TypeError) as error:
        raise BackupUnreachable(where, _shown(error)) from None
    return CloudStorage(where, store)


def _shown(error: Exception) -> str:
    return " ".join(_NOISE.sub(" ", str(error)).split())
