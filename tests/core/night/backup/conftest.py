"""A real store of two shards with two nights, a key, a waiting dump, and accesses that wait; tests copy it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.model.ids import uuid_text
from memstate_core.night.verify import verify_store
from memstate_core.run.store import Store, open_store
from tests.pipeline.conftest import run_memstate, shared

SCOPES = ("aya", "ben")
SETTINGS = "[store]\nshards = 2\nkeep_snapshots = 2\nniceness = 0\n"
NIGHTS = ("2026-04-06T02:00:00Z", "2026-04-07T02:00:00Z", "2026-04-08T02:00:00Z")
AT = datetime(2099, 1, 1, tzinfo=UTC)
"""Later than any file of a test changed."""


def flip(path: Path) -> None:
    """Changes one bit in the middle of a file."""
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


def rows(number: int) -> bytes:
    """Two observations, one for each shard."""
    made = [
        {"observation_id": f"{name}-{number}", "scope": {"type": "user", "id": name}, "topic_key": f"yard-{number}"}
        | {
            "title": f"Yard {number}",
            "observed_at": f"2026-01-0{number}",
            "fields": [{"name": "gate", "value": "shut"}],
        }
        for name in SCOPES
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in made)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "backup", make)


def make(home: Path) -> None:
    home.mkdir()
    (home / "memstate.toml").write_text(SETTINGS)
    for number, night in enumerate(NIGHTS[:2], start=1):
        (home.parent / f"{number}.jsonl").write_bytes(rows(number))
        assert run_memstate(home, "import", str(home.parent / f"{number}.jsonl"), "--now", night).code == 0
        assert run_memstate(home, "maintain", "--now", night).code == 0
    token = run_memstate(home, "keys", "add", "reader", "--all-scopes").stdout.split()[0]
    (home / "token").write_text(token)
    (home / "inbox").mkdir(exist_ok=True)
    (home / "inbox" / "waiting.jsonl").write_bytes(rows(3))


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "home"))


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    """Where backups are restored to; it does not exist yet."""
    return tmp_path / "restored" / "home"


@pytest.fixture
def journal(store: Store) -> Iterator[AccessJournal]:
    """A segment that a server is writing, with one access that it flushed."""
    with AccessJournal(store.home.accesses, "server-1") as journal:
        journal.record(topic(), datetime(2026, 4, 7, 12, tzinfo=UTC), "server", scope="user:aya")
        journal.flush()
        yield journal


def topic() -> str:
    return uuid_text("key", "user:aya", "yard-1")


def failures(home: Path) -> list[str]:
    """What `memstate verify` finds wrong with a store."""
    found = verify_store(open_store(home, {}))
    assert len(found) == 2
    return [f"{name} {each.name}: {each.detail}" for name, all in found.items() for each in all if not each.passed]


def observations(home: Path) -> set[str]:
    """The ids of the observations that the ledger of a store holds."""
    return set(open_store(home, {}).ledger.scan("evidence").select("observation_id").collect().to_series())
