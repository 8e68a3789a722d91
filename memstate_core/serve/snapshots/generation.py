"""What is served at one moment: a snapshot of each shard, and the encoder that made their vectors.

A request holds on to one generation from its beginning to its end, so no answer mixes two of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from memstate_core.embed.encoder import Encoder
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.graph import Graph
from memstate_core.state.snapshots import MANIFEST, Manifest, Snapshot

WARMED_SCOPES = 8
"""Scopes that are read before a generation serves; the others are read at their first question."""


class SharedReader(SnapshotReader):
    """A reader that several threads may use: its graph is opened once. Kuzu itself lets one read at a time."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._opening = threading.Lock()

    @cached_property
    def graph(self) -> Graph:
        """The published graph, opened read-only when it is first asked for."""
        with self._opening:
            return super().graph

    def close(self) -> None:
        """Closes the graph and lets go of what was read; nobody may be reading."""
        self.__exit__(None, None, None)
        for kept in (self.evidence, self.topics, self.facts, self.homes, self._array, self._words):
            kept.cache_clear()
        self.known.clear()


@dataclass(eq=False)
class Generation:
    """Open snapshots, one a shard, in the order of the shards.

    Attributes:
        readers: the snapshots.
        encoder: the model by which they were embedded.
        users: how many requests hold on to it; kept by whoever serves it.
    """

    readers: tuple[SharedReader, ...]
    encoder: Encoder
    users: int = field(default=0, init=False)

    @property
    def names(self) -> list[str]:
        """The names of its snapshots."""
        return [reader.name for reader in self.readers]

    @property
    def snapshot(self) -> str:
        """How answers name it."""
        return ",".join(self.names)

    @property
    def newest(self) -> Manifest:
        """The manifest of the snapshot that was made last, by logical time."""
        return max((reader.snapshot.manifest for reader in self.readers), key=lambda manifest: manifest.now)

    @cached_property
    def published_at(self) -> datetime:
        """When the last of its snapshots was written, by the machine's clock."""
        written = [(reader.snapshot.path / MANIFEST).stat().st_mtime for reader in self.readers]
        return datetime.fromtimestamp(max(written), UTC)

    def warm(self, wanted: Iterable[str]) -> None:
        """Answers a question, so that files are read and the model is loaded before the first request.

        Args:
            wanted: the scopes that matter most; the first ones of the store where too few of them are here.
        """
        here = [scope for reader in self.readers for scope in reader.scopes]
        known = set(here)
        chosen = dict.fromkeys([*(scope for scope in wanted if scope in known), *here[:WARMED_SCOPES]])
        answer(self.readers, self.encoder, None, Question("warm-up", scopes=tuple(chosen)[:WARMED_SCOPES]))
        _ = self.published_at

    def close(self, kept: Iterable[SharedReader] = ()) -> None:
        """Closes its snapshots, except those that others still need."""
        spared = set(map(id, kept))
        for reader in self.readers:
            if id(reader) not in spared:
                reader.close()
