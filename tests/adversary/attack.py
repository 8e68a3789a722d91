"""What an attack is: a function that tries some cases with its own random numbers in its own folder.

It answers how many cases it tried, and raises AssertionError with the case where a promise does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.embed.encoder import Encoder
from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.report import ImportReport
from memstate_core.run.store import Store, open_store
from tests.core.strategies import day

Attack = Callable[[Random, Path], int]
Row = dict[str, Any]


_ENCODER = Encoder()
"""The model, which all stores of a process share, so that it is loaded once."""


def a_store(folder: Path, settings: str = "") -> Store:
    """An empty store."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memstate.toml").write_text(settings)
    return opened(folder)


def opened(folder: Path) -> Store:
    """The store in a folder."""
    store = open_store(folder, {})
    vars(store)["encoder"] = _ENCODER
    return store


def imported(store: Store, rows: Sequence[Row], at: int) -> ImportReport:
    """Imports rows as one dump, on a day; some may be refused."""
    path = store.home.root / f"day-{at}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
