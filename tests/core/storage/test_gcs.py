"""Google Cloud Storage: conditions are generations, where other services compare ETags."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from obstore.store import from_url

from memstate_core.model.errors import LeaseLost, StoreLocked
from memstate_core.model.scope import Layout
from memstate_core.storage.cloud_lock import CloudLock
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.lease import Lease, take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Conflict, Unreadable, object_name, storage
from tests.core.storage.gcs import Objects, gcs_server, use_gcs
from tests.core.storage.test_cloud_lock import AYA, BEN, Clock
from tests.core.storage.test_lease import seen, state


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Objects]]:
    with gcs_server() as (endpoint, objects):
        yield use_gcs(endpoint, monkeypatch), objects


def test_conditional_puts_hold(gcs: tuple[str, Objects]) -> None:
    url, objects = gcs
    require_conditional_puts(storage(url, STORE), STORE.mark)
    assert objects.held == {}
    assert {"0", "1"} <= set(objects.conditions), "the generations that puts were made on"


def test_objects_are_written_replaced_listed_and_removed(gcs: tuple[str, Objects], tmp_path: Path) -> None:
    place = storage(gcs[0], STORE)
    assert place.create("a/one", b"1")
    assert not place.create("a/one", b"2")
    found = place.read("a/one")
    assert found is not None
    content, version = found
    assert content == b"1"
    fresh = place.replace("a/one", b"3", version)
    with pytest.raises(Conflict):
        place.replace("a/one", b"4", version)
    assert place.replace("a/one", b"5", fresh) not in (version, fresh)
    (tmp_path / "large").write_bytes(bytes(range(256)) * (24 << 10))
    digest, size = place.add(tmp_path / "large", None)
    assert size == 6 << 20
    assert sorted(place.sizes("").values()) == [1, size]
    assert b"".join(place.blocks(object_name(digest))) == (tmp_path / "large").read_bytes()
    place.remove(list(place.listed("")))
    assert place.read("a/one") is None
    with pytest.raises(Unreadable, match="is missing"):
        list(place.blocks("a/one"))


@pytest.mark.slow
def test_a_holder_whose_lease_was_taken_commits_nothing(
    gcs: tuple[str, Objects], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = storage(gcs[0], STORE)
    monkeypatch.setattr(Lease, "_renew", lambda _: None)  # as while its machine is suspended
    first = take_lease(place, "aya", "process of aya", 1.0, Layout(1))
    first.commit(state(1, first.fence), Layout(1))
    with pytest.raises(StoreLocked, match="process of aya"):
        take_lease(place, "ben", "process of ben", 600.0, Layout(1))
    time.sleep(1.0 + 2.5)
    second = take_lease(place, "ben", "process of ben", 600.0, Layout(1))
    with pytest.raises(LeaseLost):
        first.commit(state(2, first.fence), Layout(1))
    second.commit(state(2, second.fence), Layout(1))
    assert seen(place) == (2, "process of ben", 2)
    for lease in (first, second):
        lease.abandon()


def test_the_lock_of_backups_is_renewed_by_its_holder_alone(gcs: tuple[str, Objects]) -> None:
    store, clock = from_url(gcs[0]), Clock()
    lock = CloudLock(store, gcs[0], clock)
    with lock.held(AYA, "process 1"):
        for _ in range(2):
            clock.now += timedelta(minutes=10)
            lock.renew()
        clock.now += timedelta(hours=25)
        with CloudLock(store, gcs[0], clock).held(BEN, "process 2"), pytest.raises(StoreLocked, match="process 2"):
            lock.renew()
    assert gcs[1].held == {}
