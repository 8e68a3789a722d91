"""What a home remembers of publishing to a URL, by shard: the last snapshot that arrived, and what failed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct, structs
from msgspec import json as msgjson

from memstate_core.model.errors import MemstateError
from memstate_core.model.scope import resharded
from memstate_core.policy.settings import Settings
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home
from memstate_core.state.snapshots import Snapshot


class ShardNote(Struct, frozen=True):
    """The last snapshot of a shard that arrived, and why the last attempt failed; None where there is none."""

    snapshot: str | None = None
    problem: str | None = None


class Note(Struct, frozen=True):
    """Where a home publishes to, and how far each shard is."""

    where: str
    shards: dict[str, ShardNote] = {}

    @property
    def problems(self) -> dict[str, str]:
        """What failed, by shard."""
        return {shard: each.problem for shard, each in self.shards.items() if each.problem is not None}


def last_publication(home: Home) -> Note | None:
    """The note of a home; None if nothing was published to a URL yet or the note is damaged."""
    try:
        return msgjson.decode(home.last_publication.read_bytes(), type=Note)
    except (OSError, ValueError):
        return None


def not_arrived(home: Home, where: str, served: Iterable[Snapshot]) -> list[str]:
    """The shards of served snapshots that did not arrive at a URL, as far as the note of a home says."""
    note = last_publication(home)
    known = note.shards if note is not None and note.where == where else {}
    there = {shard: each.snapshot for shard, each in known.items()}
    return [each.manifest.shard for each in served if there.get(each.manifest.shard) != each.name]


def publication_url(home: Home, settings: Settings) -> str | None:
    """Where a store publishes to: as its settings say, else where it did last; None for nowhere."""
    note = last_publication(home)
    return settings.publish.url or (None if note is None else note.where)


@contextmanager
def note_outcome(home: Home, where: str, shards: Iterable[str]) -> Iterator[list[str | None]]:
    """Notes the outcome of publishing shards, also if the block fails; it yields a list for the snapshot's name."""
    arrived: list[str | None] = []
    try:
        yield arrived
    except (MemstateError, OSError) as error:
        problem = error.message if isinstance(error, MemstateError) else str(error)
        _write(home, where, dict.fromkeys(shards, problem))
        raise
    if arrived:
        _write(home, where, dict.fromkeys(shards), arrived[0])


def _write(home: Home, where: str, problems: dict[str, str | None], arrived: str | None = None) -> None:
    note = last_publication(home)
    known = note.shards if note is not None and note.where == where else {}
    changes = {resharded(shard)[0] for shard in problems}
    known = {shard: each for shard, each in known.items() if resharded(shard)[0] in changes}
    fresh = {shard: _after(known.get(shard, ShardNote()), problem, arrived) for shard, problem in problems.items()}
    make_folder(home.root)
    replace_file(home.last_publication, msgjson.encode(Note(where, {**known, **fresh})))


def _after(known: ShardNote, problem: str | None, arrived: str | None) -> ShardNote:
    return ShardNote(arrived) if problem is None else structs.replace(known, problem=problem)
