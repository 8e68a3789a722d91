"""Which files of a home are part of a store at a URL, and what becomes of one that is here alone.

Settings, keys, caches, recorded questions and Dagster's history belong to each machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from memstate_core.ingest.accesses.journal_segments import OPEN
from memstate_core.night.backup.capture import Captured, files_below
from memstate_core.night.backup.sources import Source, sources
from memstate_core.state.home import Home

_ROOTS = ("ledger", "snapshots", "inbox", "accesses", "imports", "reports", "erasures", "work")
_READ = ("processed", "failed")


class Kind(Enum):
    """What a file is, and so what becomes of it where the state at the URL does not have it."""

    WAITING = auto()
    """Input that no run has read: stays, unless the store had it and has read it."""
    READ = auto()
    """Input that a run has read: waits again, unless the store has it."""
    LEDGER = auto()
    """Decisions: set aside."""
    DERIVED = auto()
    """What the store makes again: removed."""
    RECORD = auto()
    """Pages and notes: stay, unless the store had them and has removed them."""


def kind_of(path: Path) -> Kind:
    """What a file is.

    Args:
        path: its path below the home.
    """
    root, name = path.parts[0], path.name
    if root in ("inbox", "accesses"):
        return Kind.WAITING if len(path.parts) == 2 else Kind.READ
    if root == "ledger":
        return Kind.LEDGER
    if root in ("snapshots", "erasures") or (root == "imports" and name.endswith(".json")):
        return Kind.DERIVED
    return Kind.RECORD


def captured_parts(home: Home, found: Captured) -> Iterator[Source]:
    """The files of a captured home that are part of the store."""
    return (source for source in sources(home, found) if _is_part(source.path))


def local_parts(home: Home) -> Iterator[Path]:
    """The files of a home that may be part of the store, or are input for it; paths below the home."""
    for root in _ROOTS:
        for file in files_below(home.root / root):
            path = file.relative_to(home.root)
            if _is_part(path) and not file.is_symlink():
                yield path


def _is_part(path: Path) -> bool:
    root, folders = path.parts[0], path.parts[1:-1]
    if len(path.parts) == 1 or root not in _ROOTS or any(part.startswith(".") for part in path.parts):
        return False
    if path.suffix == ".lock" or path.name.endswith((".holder.json", ".begun")):
        return False
    if root in ("inbox", "accesses"):
        return not (root == "accesses" and path.suffix == OPEN) and (not folders or folders[0] in _READ)
    return not (root == "work" and folders)
