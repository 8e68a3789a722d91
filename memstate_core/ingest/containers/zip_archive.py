"""Zip files: members are streamed, never extracted to disk, and never trusted.

A member's name only selects the reader; a name that leads out of the archive is refused. A damaged member is one
refused row, and the others are read. Exceeding a limit (members, total size, compression ratio) is an error that names
the member.

Reading relies on the standard library's zipfile; the limits are checked on the list of members before any of them is
unpacked, which stream-unzip cannot do (`tests/benchmarks/containers.py`).
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from memstate_core.ingest.containers.compression import BLOCK, MAX_RATIO
from memstate_core.ingest.raw_rows import BrokenContainer, RawRow
from memstate_core.ingest.reasons import Reason, shortened

MAX_DIRECTORY_BYTES = 32 << 20
"""Largest list of members, about 300,000 of them."""

MAX_UNPACKED_BYTES = 64 << 30
"""Largest total size of the unpacked members."""

RATIO_FROM_BYTES = 16 << 20
"""From this unpacked size on, a member, and all members together, must stay within MAX_RATIO."""

MEMBER_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError),
    *(NotImplementedError, ValueError, BrokenContainer),
)
"""Errors of reading a damaged member; zipfile raises RuntimeError if a password is needed."""

_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNSAFE = re.compile(r"^/|^[A-Za-z]:|(?:^|/)\.\.(?:/|$)")
_IGNORED = re.compile(r"(?:^|/)(?:__MACOSX/|\.)|/$")
_OPEN_ERRORS = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError, IndexError, OverflowError)
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x06"


class RefusedArchive(BrokenContainer):
    """An archive that is refused as a whole, since it exceeds a limit; the message names the member."""


class Archive:
    """An open zip file.

    Attributes:
        members: the readable members by name, without folders, hidden files and unsafe names.
        position: number of bytes of the file read so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        _check_directory(file)
        try:
            self._zip = zipfile.ZipFile(file)
        except _OPEN_ERRORS as error:
            raise BrokenContainer(f"the zip file is damaged: {error}") from None
        found = [(info.filename.replace("\\", "/"), info) for info in self._zip.infolist()]
        self._unsafe = [name for name, _ in found if _UNSAFE.search(name)]
        self.members = {name: info for name, info in found if not (_UNSAFE.search(name) or _IGNORED.search(name))}
        self.position = 0
        _check_total(self.members, file)

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of a member in blocks of at most a megabyte.

        Raises:
            RefusedArchive: it exceeds the compression ratio.
            zipfile.BadZipFile: it is damaged; likewise the other MEMBER_ERRORS.
        """
        info = self.members[name]
        _check_ratio(name, info)
        if info.compress_type not in _PLAIN_METHODS:
            raise BrokenContainer(f"it is packed by method {info.compress_type}, expected stored or deflated")
        before, given = self.position, 0
        with self._zip.open(info) as stream:
            while block := stream.read(BLOCK):
                given += len(block)
                self.position = before + info.compress_size * given // max(info.file_size, given)
                yield block

    def refused_rows(self) -> Iterator[RawRow]:
        """A row for each member whose name leads out of the archive."""
        for at, name in enumerate(self._unsafe, start=1):
            raw = name.encode("utf-8", "replace")
            detail = shortened(f"the archive holds {name!r}, expected a path below the archive's top")
            yield RawRow(at, raw, len(raw), member=shortened(name), reason=Reason.UNSAFE_PATH, detail=detail)


def _check_directory(file: BinaryIO) -> None:
    """Checks the size of the list of members before the list itself is read."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - (1 << 16) - 100))
    tail = file.read()
    file.seek(0)
    end = tail.rfind(_END)
    long_end = tail.rfind(_END_64)
    sizes = [0]
    if 0 <= end <= len(tail) - 22:
        sizes += struct.unpack_from("<L", tail, end + 12)
    if 0 <= long_end <= len(tail) - 56:
        sizes += struct.unpack_from("<Q", tail, long_end + 40)
    size = max(size for size in sizes if size != 0xFFFFFFFF)
    if size > MAX_DIRECTORY_BYTES:
        raise RefusedArchive(f"its list of members takes {size:,} bytes, expected at most {MAX_DIRECTORY_BYTES:,}")


def _check_total(members: dict[str, zipfile.ZipInfo], file: BinaryIO) -> None:
    """Checks the total size, also where each member alone passes `_check_ratio`.

    The ratio is taken to the size of the file, since several members may share the same packed bytes.
    """
    size = file.seek(0, 2)
    unsuspicious = sum(info.file_size for info in members.values() if not _is_bomb(info))
    if unsuspicious > max(RATIO_FROM_BYTES, MAX_RATIO * size):
        found = f"its {len(members):,} members unpack from {size:,} to {unsuspicious:,} bytes"
        raise RefusedArchive(f"{found}, expected at most {MAX_RATIO} times the size: it looks like a zip bomb")
    total = sum(info.file_size for info in members.values())
    if total > MAX_UNPACKED_BYTES:
        largest = max(members, key=lambda name: members[name].file_size)
        found = f"its members unpack to {total:,} bytes (the largest is {largest!r})"
        raise RefusedArchive(f"{found}, expected at most {MAX_UNPACKED_BYTES:,}")


def _is_bomb(info: zipfile.ZipInfo) -> bool:
    return info.file_size > max(RATIO_FROM_BYTES, MAX_RATIO * info.compress_size)


def _check_ratio(name: str, info: zipfile.ZipInfo) -> None:
    if _is_bomb(info):
        found = f"{name!r} unpacks from {info.compress_size:,} to {info.file_size:,} bytes"
        raise RefusedArchive(f"{found}, expected at most {MAX_RATIO} times its packed size: it looks like a zip bomb")
