"""Ways to damage a file: each class of bytes that a disk, a kill or a wrong copy leaves behind."""

from __future__ import annotations

from pathlib import Path
from random import Random

KINDS = ("flip", "cut", "empty", "zeros", "garbage", "append", "delete", "other")


def damaged(path: Path, kind: str, random: Random) -> bool:
    """Damages a file; returns whether its bytes are other ones now."""
    before = path.read_bytes()
    if kind == "delete":
        path.unlink()
        return True
    after = _other(path, random) if kind == "other" else _changed(bytearray(before), kind, random)
    if after is None or after == before:
        return False
    path.write_bytes(after)
    return True


def _changed(content: bytearray, kind: str, random: Random) -> bytes:
    size = len(content)
    begin = random.randrange(size) if size else 0
    match kind:
        case "flip" if content:
            content[begin] ^= 1 << random.randrange(8)
        case "cut":
            del content[begin:]
        case "empty":
            content.clear()
        case "zeros":
            content[begin : begin + 512] = bytes(min(512, size - begin))
        case "garbage":
            content[:] = random.randbytes(size)
        case "append":
            content += random.randbytes(random.choice((1, 7, 5000)))
    return bytes(content)


def _other(path: Path, random: Random) -> bytes | None:
    """The content of another version of a file: one of this name elsewhere, or one of this kind beside it."""
    elsewhere = [*path.parent.parent.glob(f"*/{path.name}"), *path.parent.parent.parent.glob(f"*/*/{path.name}")]
    beside = path.parent.glob(f"*{path.suffix}") if path.suffix else ()
    found = sorted({each for each in (*elsewhere, *beside) if each != path and each.is_file()})
    return random.choice(found).read_bytes() if found else None
