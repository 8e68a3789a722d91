"""Where tests write: into memory where there is room, which saves a tenth of the CPU time and every wait for the disk.

The invariant: what is written into memory leaves most of it free, and a folder that the user names is kept to.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

_GIB = 1 << 30
_BASE_GIB = 4
"""What stores of a run take: 3 GiB with two workers, and each further worker has stores of its own."""


def into_memory(environ: MutableMapping[str, str], folder: Path = Path("/dev/shm")) -> bool:
    """Makes a folder in memory that of temporary files, for this process and those that it starts, where it fits.

    Args:
        environ: the environment; a folder that it names for temporary files stays.
        folder: a file system in memory.
    """
    if {"TMPDIR", "TEMP", "TMP", "PYTEST_DEBUG_TEMPROOT"} & environ.keys() or not _fits(folder):
        return False
    environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # asked for before
    return True


def _fits(folder: Path) -> bool:
    needed = (_BASE_GIB + (os.cpu_count() or 1)) * _GIB
    return folder.is_dir() and shutil.disk_usage(folder).free >= needed and _available_memory() >= 2 * needed


def _available_memory(path: Path = Path("/proc/meminfo")) -> int:
    """Bytes of memory that processes can still take; 0 where the system does not say."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) << 10 if found else 0
