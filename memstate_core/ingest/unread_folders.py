"""Folders among dumps: nobody reads what they hold, so they are named."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_SHOWN = 5


def unread_folders(folder: Path, own: Collection[Path] = ()) -> list[Path]:
    """The folders directly in a folder that hold files, sorted; hidden ones and symbolic links are left out.

    Args:
        folder: a folder of dumps; one that cannot be listed has none.
        own: folders that are meant to be there.
    """
    try:
        found = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path not in own]
    except OSError:
        return []
    return sorted(path for path in found if _holds_files(path))


def import_warnings(paths: Collection[Path]) -> list[str]:
    """What to do about the folders in each folder that is imported."""
    found = [(path, folders) for path in paths if path.is_dir() and (folders := unread_folders(path))]
    return [
        f"the folders in {path} are not read ({named(folders)}): import each of them by its path"
        for path, folders in found
    ]


def named(folders: Collection[Path]) -> str:
    """The names of folders in one line, the first few if there are many."""
    names = [os.fsencode(path.name).decode("utf-8", "backslashreplace") for path in folders]
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _holds_files(folder: Path) -> bool:
    """Whether something visible is in a folder; one that cannot be listed counts."""
    if folder.name.startswith("."):
        return False
    try:
        return any(path.is_file() and not path.name.startswith(".") for path in folder.rglob("*"))
    except OSError:
        return True
