"""Homes of one store at a URL, whose commands import what lies in their inboxes; no night is needed for that."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memstate_core.ingest.inbox import import_inbox
from memstate_core.ingest.unfinished import WallClock
from memstate_core.model.errors import StoreLocked
from memstate_core.night.checkout.note import read_checkout
from memstate_core.night.checkout.send import named
from memstate_core.night.checkout.session import holding_lease
from memstate_core.policy.settings import IngestSettings, Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage

NOW = datetime(2026, 4, 1, tzinfo=UTC)
LATER = WallClock(lambda: 4e9, lambda _: None)


def checkout(root: Path, url: str, seconds: float = 600.0, shards: int = 1) -> Store:
    settings = StoreSettings(url=url, lease_seconds=seconds, shards=shards)
    return Store(Home(root), Settings(store=settings, ingest=IngestSettings(inbox_settle_seconds=0.0)))


def drop(store: Store, name: str, *ids: str) -> None:
    """Puts a dump into the inbox of a home."""
    store.home.inbox.mkdir(parents=True, exist_ok=True)
    rows = ({"observation_id": each, "topic_key": each, "title": each, "observed_at": "2026-01-01"} for each in ids)
    (store.home.inbox / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def command(store: Store) -> Iterator[None]:
    """A command that writes: it holds the lock and the lease, and imports the inbox first."""
    with exclusive(store.home.lock, "a test"), holding_lease(store, "a test"):
        take_inbox(store)
        yield


def take_inbox(store: Store) -> None:
    import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="import", clock=LATER)


def run(store: Store) -> None:
    with command(store):
        pass


def observations(store: Store) -> list[str]:
    """The observations in the ledger of a home; one that is there twice is listed twice."""
    return sorted(store.ledger.scan("evidence").select("observation_id").collect().to_series())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def pair(tmp_path: Path, url: str, seconds: float = 600.0) -> tuple[Store, Store]:
    return checkout(tmp_path / "aya", url, seconds), checkout(tmp_path / "ben", url, seconds)


def unnamed(store: Store, url: str) -> set[str]:
    """What lies at the URL and is not part of the state that a home has sent or pulled last."""
    note = read_checkout(store.home)
    assert note is not None
    return set(storage(url, STORE).sizes("data")) - named(note.state, note.files)


def run_when_free(store: Store) -> None:
    for _ in range(100):
        try:
            return run(store)
        except StoreLocked:
            time.sleep(0.1)
    raise AssertionError
