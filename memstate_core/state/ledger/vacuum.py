"""Vacuum: removes data files of the ledger that nothing reads any more.

A file is read by the newest version of its table, and by older versions that snapshots and rollbacks refer to. Those
stay, and so does the log of commits. What has left the newest version only a moment ago stays too, since a reader may
have listed it.

Invariant: the chain records that a file is removed before it is removed. A killed vacuum therefore leaves files that
the chain no longer names and no damage; the next one removes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memstate_core.state.files import sync_path
from memstate_core.state.ledger.commits import LOG, data_set_aside, removed_data
from memstate_core.state.ledger.ledger import Ledger


@dataclass(frozen=True)
class Vacuumed:
    """What a vacuum of a table did.

    Attributes:
        files: how many data files were removed.
        freed: their bytes.
        waiting: bytes of files that only readers may still need, which a later vacuum removes.
        pinned: bytes of files that only older versions need, which kept snapshots refer to.
    """

    files: int = 0
    freed: int = 0
    waiting: int = 0
    pinned: int = 0


def vacuum(ledger: Ledger, table: str, versions: Collection[int], until: datetime) -> Vacuumed:
    """Removes the data files of a table that nothing reads any more; call it inside `writing`.

    Args:
        ledger: the ledger.
        table: the table.
        versions: older versions whose files stay.
        until: files that left the newest version later than this stay for readers.
    """
    folder = ledger.root / table
    active = set(ledger.files(table))
    needed = active.union(*(ledger.files(table, version) for version in versions))
    recorded, removed = ledger.chain.known(table)
    superseded = {name for name in recorded - needed if not name.startswith(LOG)}
    left_at = removed_data(folder) if superseded else {}
    gone = {name for name in superseded if name in left_at and left_at[name] <= until}
    if gone:
        ledger.chain.forget(table, gone)
    dead = [*gone, *(removed - needed), *_never_committed(folder, recorded | removed | needed)]
    files, freed = _remove(folder, dead)
    waiting, pinned = _size(folder, superseded - gone), _size(folder, needed - active)
    return Vacuumed(files, freed, waiting, pinned)


def _never_committed(folder: Path, known: set[str]) -> list[str]:
    """Data files of writers that were killed before they committed; those of a commit that was set aside are kept."""
    kept = known.union(data_set_aside(folder))
    return [path.name for path in folder.glob("*.parquet") if path.name not in kept]


def _remove(folder: Path, names: Collection[str]) -> tuple[int, int]:
    """How many of some files were there, and their bytes; afterwards none is."""
    found = [path for name in names if (path := folder / name).is_file()]
    freed = sum(path.stat().st_size for path in found)
    for path in found:
        path.unlink()
    if found:
        sync_path(folder)
    return len(found), freed


def _size(folder: Path, names: Collection[str]) -> int:
    return sum(path.stat().st_size for name in names if (path := folder / name).is_file())
