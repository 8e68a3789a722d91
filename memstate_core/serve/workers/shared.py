"""What worker processes share: counters, metrics and rate limits, in a folder that lives as long as the server.

Snapshots, the inbox and the key file are shared by themselves: they are files of the store that every worker follows.

Invariant: a worker that dies, at whatever moment, leaves nothing locked, and its counts stay counted.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memstate_core.serve.options import MOST_WORKERS

_SLOT = struct.Struct("=Qdd")
"""The hash of a bucket's name, its level, and when it had it."""

_SLOTS, _WAYS = 16_384, 8
_COUNT = struct.Struct("=q")


@dataclass(frozen=True)
class Shared:
    """The folder that the workers of one server share.

    Attributes:
        folder: the folder.
        number: the number of this worker, from 0; a worker that replaces another has its number.
    """

    folder: Path
    number: int

    def buckets(self, name: str) -> BucketTable:
        """The table of rate limits of this name."""
        return BucketTable(self.folder / f"{name}.buckets")

    def connections(self) -> OpenConnections:
        """How many connections each worker has open."""
        return OpenConnections(self.folder / "open.connections", self.number)

    def counts(self, length: int) -> SharedCounts:
        """As many counters, which all workers add up."""
        return SharedCounts(self.folder, self.number, length)


class BucketTable:
    """Levels of token buckets by name, as a mapping; a context manager that locks it.

    The lock is flock(2) on the mapped file, which waits in the kernel; filelock polls.

    A bucket that finds its place taken by fuller ones displaces the one that was used least recently.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, _SLOTS * _SLOT.size)
        self._slots = mmap.mmap(self._file, _SLOTS * _SLOT.size)
        self._threads = threading.Lock()

    def __enter__(self) -> None:
        self._threads.acquire()
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._threads.release()

    def get(self, name: str, default: tuple[float, float]) -> tuple[float, float]:
        """The level of a bucket and when it had it."""
        key, _ = _hashed(name)
        return next(((level, at) for _, known, level, at in self._candidates(name) if known == key), default)

    def __setitem__(self, name: str, filled: tuple[float, float]) -> None:
        """Notes the level of a bucket."""
        key, _ = _hashed(name)
        slots = list(self._candidates(name))
        own = [place for place, known, _, _ in slots if known == key]
        place = own[0] if own else min(slots, key=lambda slot: slot[3])[0]
        _SLOT.pack_into(self._slots, place, key, *filled)

    def _candidates(self, name: str) -> Iterator[tuple[int, int, float, float]]:
        """The places where a bucket may be, and what is there."""
        _, first = _hashed(name)
        for way in range(_WAYS):
            place = ((first + way) % _SLOTS) * _SLOT.size
            yield place, *_SLOT.unpack_from(self._slots, place)


class SharedCounts:
    """Counters of all workers: each adds to a file of its own, and reads the sums of all."""

    def __init__(self, folder: Path, number: int, length: int) -> None:
        self._folder, self._length = folder, length
        file = os.open(folder / f"{number}.counts", os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, length * _COUNT.size)
        self._own = mmap.mmap(file, length * _COUNT.size)
        os.close(file)

    def add(self, place: int, number: int) -> None:
        """Increases a counter; not for several threads at a time."""
        _COUNT.pack_into(self._own, place * _COUNT.size, _COUNT.unpack_from(self._own, place * _COUNT.size)[0] + number)

    def sums(self) -> list[int]:
        """The sum of each counter over all workers, those that have died included."""
        files = [path.read_bytes() for path in self._folder.glob("*.counts")]
        counts = [[count for (count,) in _COUNT.iter_unpack(each)] for each in files]
        return [sum(column) for column in zip(*counts, strict=True)] if counts else [0] * self._length


class OpenConnections:
    """How many connections each worker has open, in a file that all map; each writes its own number alone.

    The file has one more than there are, and 0 for a worker that accepts none. The supervisor ends those of the dead.
    """

    def __init__(self, path: Path, number: int) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, MOST_WORKERS * _COUNT.size)
        self._numbers = np.frombuffer(mmap.mmap(file, MOST_WORKERS * _COUNT.size), np.int64)
        os.close(file)
        self._place = number

    def begin(self) -> None:
        """This worker accepts connections from now on, and has none."""
        self._numbers[self._place] = 1

    def end(self) -> None:
        """It accepts no more."""
        self._numbers[self._place] = 0

    def add(self, more: int) -> None:
        """Changes the number of this worker, if it accepts connections; not for several threads at a time."""
        if self._numbers[self._place]:
            self._numbers[self._place] += more

    def is_least(self) -> bool:
        """Whether no worker that accepts connections has fewer than this one, which accepts some, too."""
        return bool(self._numbers[self._place] == self._numbers[self._numbers > 0].min())


def _hashed(name: str) -> tuple[int, int]:
    """The key of a bucket, never 0, and its first place."""
    key = int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest())
    return key or 1, key % _SLOTS
