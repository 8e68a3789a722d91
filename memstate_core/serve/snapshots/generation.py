"""A generation: the open snapshot of each shard, and the encoder of their vectors.

A request uses one generation from beginning to end, so that no answer mixes two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memstate_core.embed.encoder import Encoder
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.graph import Graph
from memstate_core.state.snapshots import Manifest, Snapshot

WARMED_SCOPES = 8
"""Scopes that are loaded before a generation serves; the others are loaded by their first question."""


class SharedReader(SnapshotReader):
    """A thread-safe reader: its graph is opened once. Kuzu itself serialises reads.

    Attributes:
        written_at: when the snapshot was written, by the machine's clock.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._opening = threading.Lock()
        self.written_at = snapshot.written_at()

    @cached_property
    def graph(self) -> Graph:
        """The published graph, opened read-only on first use."""
        with self._opening:
            return super().graph

    def close(self) -> None:
        """Closes the graph and clears the caches; there must be no reads in progress."""
        self.__exit__(None, None, None)
        self.clear_caches()


@dataclass(eq=False)
class Generation:
    """The open snapshots, one per shard, in the order of the shards.

    Attributes:
        readers: the snapshots.
        encoder: the model of their embeddings.
        damaged: the shards of which nothing is served.
        users: the number of requests that use it; maintained by `Serving`.
    """

    readers: tuple[SharedReader, ...]
    encoder: Encoder
    damaged: DamagedShards = field(default_factory=DamagedShards)
    users: int = field(default=0, init=False)

    @property
    def names(self) -> list[str]:
        """The names of its snapshots."""
        return [reader.name for reader in self.readers]

    @property
    def snapshot(self) -> str:
        """Its name in answers."""
        return ",".join(self.names)

    @property
    def newest(self) -> Manifest:
        """The manifest of the latest snapshot, by logical time."""
        return max((reader.snapshot.manifest for reader in self.readers), key=lambda manifest: manifest.now)

    @property
    def published_at(self) -> datetime:
        """When the latest of its snapshots was written, by the machine's clock."""
        return max(reader.written_at for reader in self.readers)

    def warm(self, wanted: Iterable[str]) -> None:
        """Answers a question, so that files and model are loaded before the first request.

        Args:
            wanted: the scopes to load first; filled up with the first scopes of the store.
        """
        here = [scope for reader in self.readers for scope in reader.scopes]
        known = set(here)
        chosen = dict.fromkeys([*(scope for scope in wanted if scope in known), *here[:WARMED_SCOPES]])
        answer(self.readers, self.encoder, None, Question("warm-up", scopes=tuple(chosen)[:WARMED_SCOPES]))

    def close(self, shared: Iterable[SharedReader] = ()) -> None:
        """Closes its snapshots, except those that other generations still use."""
        spared = set(map(id, shared))
        for reader in self.readers:
            if id(reader) not in spared:
                reader.close()
