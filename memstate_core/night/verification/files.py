"""Whether a file is still there, with the hash that was noted.

Invariant: only regular files below a root that the settings allow are opened, by their real path: a link that leads out
of the roots is not followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import polars as pl

from memstate_core.night.verification.finding import FAILED, PASSED, UNKNOWN, WARNING, found

FILE = "file"
"""The name of the check."""

MISSING, CHANGED = "file missing: ", "file changed: "
"""How the messages of the two failures begin."""

Result = tuple[str, str]


def check_files(noted: pl.DataFrame, roots: Sequence[str], most_bytes: int) -> pl.DataFrame:
    """Findings about the files that evidence notes (columns FINDINGS); none without roots.

    Args:
        noted: columns NOTED.
        roots: the folders that may be read.
        most_bytes: the size of the largest file that is read.
    """
    rows = noted.filter(pl.col("file").is_not_null()) if roots else noted.clear()
    allowed = [Path(root).resolve() for root in roots]

    @cache
    def digest(path: Path) -> Result:
        return _digest(path, allowed, most_bytes)

    columns = rows.select("workspace", "file", "sha256").iter_rows()
    return found(rows, FILE, (_compared(workspace, file, sha256, digest) for workspace, file, sha256 in columns))


def _compared(workspace: str | None, file: str, sha256: str | None, digest: Callable[[Path], Result]) -> Result:
    path = Path(file) if workspace is None else Path(workspace) / file
    if not path.is_absolute():
        return UNKNOWN, f"{file} is relative, and no workspacePath was noted beside it"
    status, said = digest(path)
    if status != PASSED:
        return status, said
    if sha256 is None:
        return PASSED, f"{path} is there; no hash was noted"
    if said != sha256.strip().lower():
        return FAILED, f"{CHANGED}{path} has SHA-256 {said}, noted was {sha256}"
    return PASSED, f"{path} has the noted hash"


def _digest(path: Path, roots: Sequence[Path], most_bytes: int) -> Result:
    """The SHA-256 of a file as `passed`, or why there is none."""
    try:
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(root) for root in roots):
            return UNKNOWN, f"{path} is outside the folders that [verification] roots allows"
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return FAILED, f"{MISSING}{path}"
    except (OSError, ValueError) as error:
        return WARNING, f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    try:
        return _read(handle, path, most_bytes)
    except OSError as error:
        return WARNING, f"{path} cannot be read: {error.strerror}"
    finally:
        os.close(handle)


def _read(handle: int, path: Path, most_bytes: int) -> Result:
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        return WARNING, f"{path} is no regular file"
    if state.st_size > most_bytes:
        return UNKNOWN, f"{path} has {state.st_size:,} bytes, more than [verification] max_file_mib allows"
    with os.fdopen(handle, "rb", closefd=False) as opened:
        return PASSED, hashlib.file_digest(opened, "sha256").hexdigest()
