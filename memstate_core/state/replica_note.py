"""The note that marks a folder as that of a replica: it has the snapshots of another store, and nothing else."""

from __future__ import annotations

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.scope import Layout
from memstate_core.state.home import Home


class ReplicaNote(Struct, frozen=True):
    """What a replica knows of its source.

    Attributes:
        source: its address.
        shards: the number of shards that are served.
        erasures: how many erasures of each shard's CURRENT it follows.
        writer: where the store takes writes; empty if unknown.
        layout: how often their number was changed.
        accepting: the shards whose CURRENT says that the store fetches what replicas accept for it.
        accepts: whether the note of the store says so, which names no shard.
        erased: how many erasures of the store it follows in what belongs to no shard that is here.
    """

    source: str
    shards: int
    erasures: dict[str, int] = {}
    writer: str = ""
    accepting: list[str] = []
    layout: int = 0
    accepts: bool = False
    erased: int = 0

    @property
    def shard_layout(self) -> Layout:
        """The shards that are served."""
        return Layout(self.shards, self.layout)

    @property
    def accepts_writes(self) -> bool:
        """Whether replicas may accept writes: one shard is enough, since the store fetches for all of them."""
        return self.accepts or bool(self.accepting)


def read_replica_note(home: Home) -> ReplicaNote | None:
    """The note that marks a folder as that of a replica; None if it is none."""
    try:
        return msgjson.decode(home.replica.read_bytes(), type=ReplicaNote)
    except (OSError, ValueError):
        return None


def writer_of(home: Home) -> str:
    """Where the store of a replica takes writes; empty if unknown."""
    note = read_replica_note(home)
    return "" if note is None else note.writer
