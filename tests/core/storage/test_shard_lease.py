"""The leases of shards at a URL: one night of each, beside others, and none that another machine has taken over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from memstate_core.model.errors import LeaseLost, StoreLocked, StoreUrlRefused
from memstate_core.storage.held import Holding, unchanged_for
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import ShardLease, night_holders, require_no_nights, take_shard
from memstate_core.storage.storage import Storage, storage

SHORT, LONG = 1.0, 600.0
S0 = "head/shard-s0.json"


@pytest.fixture
def place(url: str) -> Storage:
    return storage(url, STORE)


@pytest.fixture
def taken() -> Iterator[Callable[..., ShardLease]]:
    """Takes leases, whose threads end with the test."""
    leases: list[ShardLease] = []

    def take(place: Storage, shard: str, checkout: str, seconds: float = LONG) -> ShardLease:
        leases.append(take_shard(place, shard, checkout, f"night of {checkout}", seconds))
        return leases[-1]

    yield take
    for lease in leases:
        lease.abandon()


def test_nights_of_other_shards_go_on_and_one_of_the_same_shard_does_not(
    place: Storage, taken: Callable[..., ShardLease]
) -> None:
    assert night_holders(place) == []
    first, second = taken(place, "s0", "aya"), taken(place, "s1", "ben")
    with pytest.raises(StoreLocked, match=r"night of aya, whose lease number 1 expires in 60. s") as refused:
        taken(place, "s0", "ben")
    assert not refused.value.brief, "a night does not wait for another one of its shard"
    with pytest.raises(StoreLocked, match="night of aya") as refused:
        require_no_nights(place, "ben")
    assert refused.value.brief, "a job that needs the whole store waits for nights"
    assert sorted(night_holders(place)) == ["night of aya", "night of ben"]
    for lease in (first, second):
        lease.require()
        lease.release()
    assert night_holders(place) == []
    require_no_nights(place, "carl")
    assert taken(place, "s0", "ben").fence == 2


@pytest.mark.slow
@pytest.mark.parametrize("by_night", [True, False])
def test_a_paused_night_that_wakes_up_is_refused(
    place: Storage, taken: Callable[..., ShardLease], monkeypatch: pytest.MonkeyPatch, by_night: bool
) -> None:
    """Another night of the shard, or a command that needs the whole store, came between."""
    with monkeypatch.context() as patch:
        patch.setattr(Holding, "_renew", lambda _: None)
        paused = taken(place, "s0", "aya", SHORT)
    while unchanged_for(place, S0) < timedelta(seconds=SHORT + 1):
        time.sleep(0.1)
    assert night_holders(place) == []
    if by_night:
        assert taken(place, "s0", "ben").fence == 2
    else:
        require_no_nights(place, "ben")
    for _ in range(2):
        with pytest.raises(LeaseLost, match="held the lease number 1, which expired, and number 2 was taken by"):
            paused.require()
    paused.release()
    assert night_holders(place) == (["night of ben"] if by_night else [])


@pytest.mark.slow
def test_a_night_that_lives_keeps_its_shard(place: Storage, taken: Callable[..., ShardLease]) -> None:
    lease = taken(place, "s0", "aya", SHORT)
    time.sleep(SHORT + 2.5)
    with pytest.raises(StoreLocked):
        taken(place, "s0", "ben")
    lease.require()


def test_the_machine_of_a_dead_night_need_not_wait(place: Storage, taken: Callable[..., ShardLease]) -> None:
    """The lock of the shard in its home says that the process is dead."""
    taken(place, "s0", "aya").abandon()
    require_no_nights(place, "aya")
    assert night_holders(place) == []
    taken(place, "s0", "aya").abandon()
    assert taken(place, "s0", "aya").fence == 4


def test_what_is_no_lease_is_refused(place: Storage, taken: Callable[..., ShardLease]) -> None:
    place.create(S0, b'{"fence": "one"}')
    with pytest.raises(StoreUrlRefused, match=r"head/shard-s0\.json"):
        taken(place, "s0", "aya")
