"""Which shards have their snapshots in a checkout: all, or those that a bound allows beside what a night needs.

A snapshot is nine tenths of what a store has, and the night of a shard reads those of its own alone. The ledger, notes,
CURRENT and the manifests are in every checkout.

Invariant: a shard whose night has begun in this home is never among the absent ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from memstate_core.night.backup.capture import files_below
from memstate_core.night.backup.folder import escaped
from memstate_core.night.checkout.note import Note, store_url
from memstate_core.run.store import Store
from memstate_core.state.home import Home
from memstate_core.state.lock import holder_of
from memstate_core.state.snapshots import MANIFEST
from memstate_core.storage.head import RemoteFile

Files = Mapping[str, RemoteFile]


@dataclass(frozen=True)
class ShardsHere:
    """What a command needs in the home.

    Attributes:
        needed: the shards whose snapshots it reads.
        bound: how many bytes of snapshots stay beside those, if they are here and current; None for any number.
    """

    needed: Collection[str] = ()
    bound: int | None = None


@dataclass(frozen=True)
class Choice:
    """Which shards are in a home.

    Attributes:
        absent: the shards whose snapshots are not there, sorted.
        used: the shards that had a night there, the last one last.
        dropped: those of `absent` that were there, and whose snapshots are as they are at the URL.
    """

    absent: list[str]
    used: list[str]
    dropped: list[str]


def is_bounded(store: Store) -> bool:
    """Whether nights of single shards leave the snapshots of others at the URL."""
    settings = store.settings.store
    has_several = settings.nights_at_once > 1 and len(store.shards) > 1
    return bool(settings.checkout_mib and has_several and store_url(store))


def of_night(store: Store, shard: str) -> ShardsHere | None:
    """What the night of a shard needs; None for the whole store."""
    return ShardsHere([shard], store.settings.store.checkout_mib << 20) if is_bounded(store) else None


def of_brief(store: Store) -> ShardsHere | None:
    """What a command needs that adds to the ledger alone; None for the whole store."""
    return ShardsHere() if is_bounded(store) else None


def chosen(home: Home, note: Note, files: Iterable[RemoteFile], wanted: ShardsHere) -> Choice:
    """Which shards are in a home when it has a state.

    A shard that is here stays if nothing of it would have to be fetched, as long as all that stays is within the bound;
    of those that are not, the ones that had a night here last come first.

    Args:
        home: the home.
        note: the note of its checkout, with the state that it had before.
        files: the files of the state.
        wanted: what the command needs.
    """
    there, before = snapshot_files(files), snapshot_files(note.files)
    needed = {shard for shard in there if shard in wanted.needed or _has_begun(home, shard)}
    here = [shard for shard in there if shard not in note.absent]
    current = {shard for shard in here if _is_same(there[shard], before.get(shard, {}))}
    used = [*(shard for shard in note.used if shard in there and shard not in wanted.needed), *wanted.needed]
    places = {shard: place for place, shard in enumerate(used)}
    others = sorted(current - needed, key=lambda shard: (-places.get(shard, -1), shard))
    sizes = accumulate((_size(there[shard]) for shard in others), initial=sum(_size(there[shard]) for shard in needed))
    next(sizes)
    kept = {each for each, size in zip(others, sizes, strict=True) if wanted.bound is None or size <= wanted.bound}
    absent = there.keys() - needed - kept
    return Choice(sorted(absent), used, sorted(absent & current))


def snapshot_files(files: Iterable[RemoteFile]) -> dict[str, dict[str, RemoteFile]]:
    """The files of snapshots by shard and path, without CURRENT and the manifests; a shard may have none."""
    found: dict[str, dict[str, RemoteFile]] = defaultdict(dict)
    for file in files:
        if (shard := shard_of(file.path)) is not None:
            found[shard][file.path] = file
    return dict(found)


def shard_of(path: str) -> str | None:
    """The shard whose snapshot a file is of, by its path in a list of files; None for other files and the manifests."""
    root, _, rest = path.partition("/")
    shard, _, inner = rest.partition("/")
    name = inner.partition("/")[2]
    return shard if root == "snapshots" and name not in ("", MANIFEST) else None


def has_more(home: Home, shard: str, files: Files) -> bool:
    """Whether a home has files of the snapshots of a shard that are not among some."""
    paths = (escaped(path.relative_to(home.root)) for path in files_below(home.snapshots(shard)))
    return any(shard_of(path) is not None and path not in files for path in paths)


def _has_begun(home: Home, shard: str) -> bool:
    """Whether the night of a shard is in progress in this home, beside those of others."""
    return home.begun_night(shard).exists() and bool(holder_of(home.shard_lock(shard)))


def _is_same(there: Files, before: Files) -> bool:
    """Whether nothing would have to be fetched."""
    return all((known := before.get(path)) and known.sha256 == file.sha256 for path, file in there.items())


def _size(files: Files) -> int:
    return sum(file.size for file in files.values())
