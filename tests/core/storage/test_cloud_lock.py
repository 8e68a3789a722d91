"""The lock of backups in a bucket: one writer, no holder that stays for ever, and no list without it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from memstate_core.model.errors import StoreLocked
from memstate_core.state.home import Home
from memstate_core.storage import cloud_lock
from memstate_core.storage.cloud import CloudStorage
from memstate_core.storage.cloud_lock import CloudLock

AYA, BEN = Home(Path("/srv/aya")), Home(Path("/srv/ben"))


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def left(store: MemoryStore, home: Home) -> CloudLock:
    """A lock whose holder was killed."""
    lock = CloudLock(store, "s3://b")
    held = lock.held(home, "process 1")
    held.__enter__()
    content = bytes(obstore.get(store, "backup.lock").bytes())
    held.__exit__(None, None, None)
    obstore.put(store, "backup.lock", content)
    return lock


def test_a_second_writer_waits_and_the_lock_goes_with_its_holder(store: MemoryStore) -> None:
    with (
        CloudLock(store, "s3://b").held(AYA, "process 1"),
        pytest.raises(StoreLocked, match=r"s3://b is locked by process 1 of /srv/aya on .* delete s3://b/backup\.lock"),
        CloudLock(store, "s3://b").held(BEN, "process 2"),
    ):
        raise AssertionError
    with CloudLock(store, "s3://b").held(BEN, "process 2"):
        pass
    assert obstore.list(store).collect() == []


def test_what_a_killed_holder_left_is_taken_over(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    left(store, AYA)
    with CloudLock(store, "s3://b").held(AYA, "process 2"):
        pass
    assert obstore.list(store).collect() == []
    left(store, AYA)
    clock = Clock()
    clock.now += timedelta(hours=23)
    with pytest.raises(StoreLocked), CloudLock(store, "s3://b", clock).held(BEN, "process 2"):
        raise AssertionError
    monkeypatch.setattr(cloud_lock.platform, "node", lambda: "elsewhere")
    with pytest.raises(StoreLocked), CloudLock(store, "s3://b", clock).held(AYA, "process 2"):
        raise AssertionError
    clock.now += timedelta(hours=2)
    with CloudLock(store, "s3://b", clock).held(BEN, "process 2"):
        pass


def test_a_long_backup_keeps_its_lock(store: MemoryStore) -> None:
    clock = Clock()
    lock = CloudLock(store, "s3://b", clock)
    with lock.held(AYA, "process 1"):
        first = obstore.head(store, "backup.lock")["e_tag"]
        lock.renew()
        assert obstore.head(store, "backup.lock")["e_tag"] == first
        clock.now += timedelta(minutes=6)
        lock.renew()
        assert obstore.head(store, "backup.lock")["e_tag"] != first
    assert obstore.list(store).collect() == []


def test_without_its_lock_a_backup_writes_no_list(store: MemoryStore) -> None:
    storage = CloudStorage("s3://b", store)
    with storage.locked(AYA, "process 1"):
        obstore.delete(store, "backup.lock")
        with pytest.raises(StoreLocked, match="its lock was removed"):
            storage.write("backups/1.json", b"{}")
        obstore.put(store, "backup.lock", b"garbage")
        with pytest.raises(StoreLocked):
            storage.write("backups/1.json", b"{}")
    assert [each["path"] for each in obstore.list(store).collect()] == ["backup.lock"]
