"""Contents in object storage: Amazon S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

Credentials come from the environment, as the libraries of these services read them; none is kept or shown.

Invariant: an object exists when all its bytes were sent and had the digest that names it. A killed writer leaves parts
of an upload at most, which have no name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.model.errors import CloudUnavailable
from memstate_core.state.files import file_digest
from memstate_core.state.home import Home
from memstate_core.storage.cloud_lock import CloudLock
from memstate_core.storage.purpose import BACKUPS, Purpose
from memstate_core.storage.storage import BLOCK, LOCK, OBJECTS, Conflict, Listed, Unreadable, blocks_of, object_name
from memstate_core.storage.versions import on_condition, version_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_ONE_REQUEST = 4 << 20
"""Bytes that are sent by one request; more are sent in parts, which takes three requests at least."""
_NOISE = re.compile(r"\n\nDebug source.*|\?[^\s,]*|<RequestId>.*|<[^>]*>", re.DOTALL)
"""What follows the sentence of an error, and query strings, which may carry a signature."""


class CloudStorage:
    """The storage of a bucket, or of a prefix in it.

    Args:
        where: its URL.
        store: the object storage, opened at that prefix.
        purpose: what it is used for.
    """

    def __init__(self, where: str, store: ObjectStore, purpose: Purpose = BACKUPS) -> None:
        self.where = where
        self._store, self._purpose = store, purpose
        self.lock = CloudLock(store, where)

    def require_usable(self, _home: Home, /) -> None:
        """Refuses a prefix that holds other things; any home may use it."""
        import obstore

        with self._reached():
            found = obstore.list_with_delimiter(self._store)
        names = {*found["common_prefixes"], *(each["path"] for each in found["objects"])}
        mark = self._purpose.mark
        others = sorted(names - {mark, OBJECTS, LOCK} - self._purpose.beside)
        if others and mark not in names:
            raise self._purpose.refused(self.where, f"it holds other files, such as {others[0]}")

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
        return {name: each.size for name, each in self.listed(folder).items()}

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """All objects below a prefix."""
        import obstore

        with self._reached():
            pages = obstore.list(self._store, prefix=folder)
            return {each["path"]: Listed(each["size"], each["last_modified"]) for page in pages for each in page}

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

    def read(self, name: str) -> tuple[bytes, str] | None:
        """An object with its version."""
        import obstore

        with self._reached():
            try:
                answer = obstore.get(self._store, name)
            except FileNotFoundError:
                return None
            return bytes(answer.bytes()), version_of(self._store, answer.meta)

    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Puts an object, if it has this version still; a conditional put that the storage decides."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._reached():
            try:
                put = obstore.put(self._store, name, content, mode=on_condition(self._store, version))
                return version_of(self._store, put)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                found = self.read(name)
            if found is None or found[0] != content:  # else an earlier attempt of this put, whose answer was lost
                raise Conflict
            return found[1]

    def create(self, name: str, content: bytes) -> bool:
        """Puts an object on condition that there is none."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._reached():
            try:
                obstore.put(self._store, name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def add(self, source: Path, expected: str | None) -> tuple[str, int]:
        """Sends a file under the digest that it has: a small one by one request, a large one in parts."""
        import obstore

        content = source.read_bytes() if source.stat().st_size <= _ONE_REQUEST else None
        if content is None:
            digest, size = file_digest(source), source.stat().st_size
        else:
            digest, size = hashlib.sha256(content).hexdigest(), len(content)
        if expected in (None, digest):
            with self._reached():
                self.lock.renew()
                sent = self._unchanged(source, digest) if content is None else content
                obstore.put(self._store, object_name(digest), sent)
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
            raise self._purpose.unreachable(self.where, f"{source} changed while it was sent")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns errors of the storage into ones of memstate, without what might be a secret."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            raise self._purpose.unreachable(self.where, _shown(error)) from None


def cloud_storage(where: str, purpose: Purpose = BACKUPS) -> CloudStorage:
    """The storage of a URL.

    Raises:
        CloudUnavailable: the package obstore is missing.
        BackupUnreachable: the environment has no settings, or wrong ones, for this service; for another purpose its
            own error.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise CloudUnavailable(where) from None
    try:
        store = from_url(where, retry_config={"max_retries": purpose.retries, "retry_timeout": purpose.patience})
    except (BaseError, ValueError, TypeError) as error:
        raise purpose.unreachable(where, _shown(error)) from None
    return CloudStorage(where, store, purpose)


def _shown(error: Exception) -> str:
    return " ".join(_NOISE.sub(" ", str(error)).split()).rstrip(":")
