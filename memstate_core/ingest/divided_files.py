"""Division of files of the API with which processes died: what was acknowledged beside a fatal row is imported.

Invariant: the pieces hold the rows of the file in their order, signed and synced, before the file itself is moved. If a
kill comes between the two, both are read, and the rows that come twice are duplicates.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from memstate_core.ingest.api_files import damage, is_header, signed, written_at
from memstate_core.state.files import replace_file

PIECES = 64
"""How many pieces a file is divided into at most."""


def divide(path: Path, key: bytes) -> list[Path]:
    """Writes the rows of a file that a server wrote as several files beside it.

    Args:
        path: the file, in the inbox.
        key: signs the pieces.

    Returns:
        The pieces, which sort at the place of the file; none if it has a single row, was changed, or is of others.
    """
    rows = _rows(path)
    if len(rows) < 2:
        return []
    count = min(PIECES, len(rows))
    bounds = [number * len(rows) // count for number in range(count + 1)]
    pieces = [b"".join(rows[begin:end]) for begin, end in pairwise(bounds)]
    places = [_piece(path, number) for number in range(count)]
    for place, piece in zip(places, pieces, strict=True):
        replace_file(place, signed(piece, key))
    return places


def _rows(path: Path) -> list[bytes]:
    """The rows of a sound file of the API; none of other files."""
    if written_at(path.name) is None:
        return []
    content = path.read_bytes()
    if damage(path.name, [content]) is not None:
        return []
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[is_header(lines[0]) :] if line.strip()]


def _piece(path: Path, number: int) -> Path:
    stem, _, rest = path.name.partition(".")
    return path.with_name(f"{stem}_{number:02}.{rest}")
