"""Corrupted files of a store: noticed and named by `verify`, or without any effect on what is served or rebuilt."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.model.errors import MemstateError
from memstate_core.night.verify import verify_store
from memstate_core.retrieve.export import export_records
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from tests.adversary.attack import a_store, imported
from tests.adversary.rows import MINE, rows_of
from tests.core.revise.nights import night

KINDS = ("flip", "cut", "empty", "garbage", "append", "delete")


def corrupted(path: Path, kind: str, random: Random) -> None:
    """Damages a file."""
    content = bytearray(path.read_bytes())
    match kind:
        case "flip" if content:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        case "cut":
            content = content[: random.randrange(len(content) + 1)]
        case "empty":
            content = bytearray()
        case "garbage":
            content = bytearray(random.randbytes(len(content)))
        case "append":
            content += random.randbytes(7)
        case _:
            path.unlink()
            return
    path.write_bytes(content)


def snapshot_files(store: Store) -> list[Path]:
    """The files of the served snapshot."""
    (snapshot,) = served(store.home, store.shards)
    return sorted(path for path in snapshot.path.rglob("*") if path.is_file())


def _exported(store: Store) -> str:
    with ExitStack() as stack:
        readers = [stack.enter_context(SnapshotReader(each)) for each in served(store.home, store.shards)]
        return json.dumps(list(export_records(readers)), sort_keys=True, default=str)


def _complaints(store: Store) -> list[str]:
    try:
        return [each.name for verdicts in verify_store(store).values() for each in verdicts if not each.passed]
    except MemstateError as error:
        return [error.message]


def attack(random: Random, folder: Path, count: int = 6) -> int:
    """Each damage to a file of the served snapshot is noticed, or what is served is as before."""
    sound = a_store(folder / "sound")
    imported(sound, rows_of(random, MINE, 8, "mine"), at=4)
    night(sound, 5)
    assert _complaints(sound) == []
    expected = _exported(sound)
    for number in range(count):
        home = Path(shutil.copytree(sound.home.root, folder / f"copy-{number}"))
        store = open_store(home, {})
        path, kind = random.choice(snapshot_files(store)), random.choice(KINDS)
        before: Any = path.read_bytes()
        corrupted(path, kind, random)
        if path.exists() and path.read_bytes() == before:
            continue
        found = _complaints(store)
        assert found or _exported(store) == expected, f"{kind} of {path.name} was not noticed"
        shutil.rmtree(home)
    return count
