"""What an attack is: a function that tries some cases with its own random numbers in its own folder.

It answers how many cases it tried, and raises AssertionError with the case where a promise does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from memstate_core.run.store import Store, open_store

Attack = Callable[[Random, Path], int]


def a_store(folder: Path, settings: str = "") -> Store:
    """An empty store."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memstate.toml").write_text(settings)
    return open_store(folder, {})
