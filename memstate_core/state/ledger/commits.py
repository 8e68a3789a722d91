"""The commits of a Delta table as files: which there are, which data they add, and whether they are whole.

Delta writes a commit without flushing it, so after a power cut the last one may be empty or name data that is not on
disk. Such a commit was never acknowledged (`chain`) and is set aside, never deleted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from msgspec import json as msgjson

from memstate_core.state.files import sync_path

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
_VERSIONED = re.compile(r"(\d{20})\.(json|checkpoint.*parquet)").fullmatch
_UNFINISHED = "unfinished-"
_log = logging.getLogger("memstate.ledger")


def commit_name(version: int) -> str:
    """The path of a commit below its table's folder."""
    return f"{LOG}/{version:020d}.json"


def version_of(name: str) -> int | None:
    """The version of a commit, by its path; None for any other file."""
    found = _VERSIONED(name.removeprefix(f"{LOG}/"))
    return int(found[1]) if found and found[2] == "json" else None


def log_files(table: Path) -> list[str]:
    """Commits, checkpoints and the note that names the last checkpoint, as paths below the table's folder."""
    folder = table / LOG
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [f"{LOG}/{name}" for name in names if _VERSIONED(name) or f"{LOG}/{name}" == LAST_CHECKPOINT]


def commits_after(table: Path, version: int) -> Iterator[int]:
    """The versions that follow one, as far as they are consecutive."""
    for later in count(version + 1):
        if not (table / commit_name(later)).exists():
            return
        yield later


def added_data(table: Path, version: int) -> list[str]:
    """The data files that a commit adds, as paths below the table's folder."""
    return [path for path, _ in _added(table / commit_name(version))]


def data_set_aside(table: Path) -> list[str]:
    """The data files that commits which were set aside add, as far as they can be read."""
    found: list[str] = []
    for commit in table.glob(f"{_UNFINISHED}*.json"):
        with suppress(OSError, ValueError, KeyError):
            found += [path for path, _ in _added(commit)]
    return found


def removed_data(table: Path) -> dict[str, datetime]:
    """When each data file left the newest version of a table, by its path below the table's folder."""
    found: dict[str, datetime] = {}
    for commit in (table / name for name in log_files(table) if version_of(name) is not None):
        for action in _actions(commit):
            if (removed := action.get("remove")) is not None:
                found[unquote(str(removed["path"]))] = datetime.fromtimestamp(removed["deletionTimestamp"] / 1000, UTC)
    return found


def is_whole(table: Path, version: int) -> bool:
    """Whether a commit can be read, and all data that it adds."""
    try:
        added = list(_added(table / commit_name(version)))
        for path, size in added:
            if (table / path).stat().st_size != size:
                return False
            pl.read_parquet(table / path, glob=False)
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
    return True


def set_aside(table: Path, version: int) -> None:
    """Moves a commit that is not whole, and what follows it, out of the log; the table is as before it."""
    names = [name for name in log_files(table) if (found := _VERSIONED(Path(name).name)) and int(found[1]) >= version]
    for name in names:
        (table / name).rename(table / f"{_UNFINISHED}{Path(name).name}")
    if any(not name.endswith(".json") for name in names):
        (table / LAST_CHECKPOINT).unlink(missing_ok=True)
    sync_path(table / LOG)
    sync_path(table)
    _log.warning("commit %d of %s was not finished and never acknowledged; it was set aside", version, table)


def _added(commit: Path) -> Iterator[tuple[str, int]]:
    actions = _actions(commit)
    if not actions:
        raise ValueError(f"{LOG}/{commit.name} is empty")
    for action in actions:
        added: dict[str, Any] | None = action.get("add")
        if added is not None:
            yield unquote(str(added["path"])), int(added["size"])


def _actions(commit: Path) -> list[dict[str, Any]]:
    return [msgjson.decode(line) for line in commit.read_bytes().splitlines()]
