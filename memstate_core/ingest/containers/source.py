"""Sources of a reader: a plain file, or the members of an archive, each as a stream of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

from memstate_core.ingest.containers.compression import UNPACK_ERRORS, unpacked
from memstate_core.ingest.containers.sniff import HEAD_BYTES, head_objects
from memstate_core.ingest.containers.zip_archive import MEMBER_ERRORS, Archive, RefusedArchive
from memstate_core.ingest.raw_rows import BrokenContainer, RawRow
from memstate_core.ingest.reasons import Reason, shortened


@dataclass(frozen=True)
class Member:
    """One stream of bytes.

    Attributes:
        name: its path inside the archive; None for a plain file.
        blocks: restarts the stream; only the stream started last may be read.
    """

    name: str | None
    blocks: Callable[[], Iterator[bytes]]

    @property
    def head(self) -> bytes:
        """Its first HEAD_BYTES bytes, fewer if it ends or breaks before."""
        return self._begun[0]

    @property
    def problem(self) -> str | None:
        """Why it breaks within its head; None if it does not."""
        return self._begun[1]

    @cached_property
    def _begun(self) -> tuple[bytes, str | None]:
        found, problem = b"", None
        with closing(self.blocks()) as blocks:  # type: ignore[type-var]
            try:
                while len(found) < HEAD_BYTES and (block := next(blocks, b"")):
                    found += block
            except RefusedArchive:
                raise
            except (BrokenContainer, OSError, *UNPACK_ERRORS) as error:
                problem = str(error)
        return found[:HEAD_BYTES], problem

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects that it begins with."""
        return head_objects(self.head)

    def guarded(self, rows: Iterator[RawRow]) -> Iterator[RawRow]:
        """Rows of this member; if a member of an archive is damaged, the last row is a refusal that says so.

        Raises:
            RefusedArchive: the whole archive is refused.
        """
        line = 0
        try:
            for row in rows:
                line = row.line
                yield row
        except RefusedArchive:
            raise
        except BrokenContainer as problem:
            if self.name is None:
                raise
            detail = shortened(f"{self.name} cannot be read on: {problem}; expected a whole member")
            raw = self.name.encode("utf-8", "replace")
            yield RawRow(line + 1, raw, len(raw), None, self.name, None, Reason.BROKEN_MEMBER, detail)


@dataclass(frozen=True)
class Source:
    """A dump to be read.

    Attributes:
        path: the file.
        members: its streams, sorted by name; a plain file is one member without a name.
        archive: the archive, if it is one.
    """

    path: Path
    members: tuple[Member, ...]
    archive: Archive | None = None

    def matching(self, names: re.Pattern[str]) -> list[Member]:
        """The members of an archive whose path matches; a plain file always does."""
        return [member for member in self.members if member.name is None or names.search(member.name)]


def plain_source(path: Path, file: BinaryIO, packing: str | None) -> Source:
    """A plain file, which may be compressed (a key of MAGIC)."""

    def blocks() -> Iterator[bytes]:
        file.seek(0)
        yield from unpacked(file, packing)

    return Source(path, (Member(None, blocks),))


def zip_source(path: Path, file: BinaryIO) -> Source:
    """A zip file.

    Raises:
        BrokenContainer: it is damaged, or exceeds a limit.
    """
    archive = Archive(file)
    members = tuple(Member(name, partial(_member_blocks, archive, name)) for name in sorted(archive.members))
    return Source(path, members, archive)


def _member_blocks(archive: Archive, name: str) -> Iterator[bytes]:
    try:
        yield from archive.blocks(name)
    except RefusedArchive:
        raise
    except MEMBER_ERRORS as error:
        raise BrokenContainer(str(error) or type(error).__name__) from None
