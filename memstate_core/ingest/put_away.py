"""Putting a file that was read into another folder, where it is kept: nothing there is ever overwritten."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from memstate_core.ingest.packing import MAGIC


def put_away(path: Path, folder: Path) -> None:
    """Moves a file into a folder of the same file system, which is made if need be, under its name if that is free."""
    folder.mkdir(parents=True, exist_ok=True)
    path.rename(_free_name(folder / path.name))


def _free_name(wanted: Path) -> Path:
    """The path itself, or with the first free number before its suffixes: `a.jsonl.gz`, `a.2.jsonl.gz`."""
    if not wanted.exists():
        return wanted
    packing = wanted.suffix if wanted.suffix.lower() in MAGIC and wanted.with_suffix("").suffix else ""
    plain = Path(wanted.name.removesuffix(packing))
    numbered = (wanted.with_name(f"{plain.stem}.{n}{plain.suffix}{packing}") for n in count(2))
    return next(path for path in numbered if not path.exists())
