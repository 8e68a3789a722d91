"""The lease of a store at a URL: one writer, numbers that grow, and no clock of a machine that matters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memstate_core.model.errors import LeaseLost, StoreLocked, StoreUnreachable, StoreUrlRefused
from memstate_core.model.scope import Layout
from memstate_core.storage.head import HEAD, State, read_head
from memstate_core.storage.held import unchanged_for
from memstate_core.storage.lease import Lease, lease_holder, take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Storage, storage
from tests.core.storage.s3 import Faults

SHORT, LONG = 1.0, 600.0


@pytest.fixture
def place(url: str) -> Storage:
    return storage(url, STORE)


@pytest.fixture
def taken() -> Iterator[Callable[..., Lease]]:
    """Takes leases, whose threads end with the test."""
    leases: list[Lease] = []

    def take(place: Storage, checkout: str, seconds: float = LONG) -> Lease:
        leases.append(take_lease(place, checkout, f"process of {checkout}", seconds, Layout(1)))
        return leases[-1]

    yield take
    for lease in leases:
        lease.abandon()


def state(number: int, fence: int) -> State:
    return State(number, fence, f"{number:064}", None, 0, datetime(2026, 1, 1, tzinfo=UTC))


def seen(place: Storage) -> tuple[int, str, int]:
    """The number, the holder and the state at the URL."""
    found = read_head(place)
    assert found is not None
    return found[0].fence, found[0].holder, 0 if found[0].state is None else found[0].state.number


def paused(patch: pytest.MonkeyPatch) -> None:
    """Has holders renew nothing, as while their machine is suspended."""
    patch.setattr(Lease, "_renew", lambda _: None)


def test_one_holds_it_and_its_number_grows(place: Storage, taken: Callable[..., Lease]) -> None:
    assert lease_holder(place) == ""
    first = taken(place, "aya")
    assert lease_holder(place) == "process of aya"
    with pytest.raises(StoreLocked, match=r"process of aya, whose lease number 1 expires in 60. s unless renewed"):
        taken(place, "ben")
    first.commit(state(1, 1), Layout(1))
    first.release()
    assert (seen(place), lease_holder(place)) == ((1, "", 1), "")
    second = taken(place, "ben")
    assert (second.fence, second.state, second.abandoned) == (2, state(1, 1), False)
    assert seen(place) == (2, "process of ben", 1)


@pytest.mark.slow
def test_a_paused_holder_that_wakes_up_changes_nothing(
    place: Storage, taken: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        paused(patch)
        first = taken(place, "aya", SHORT)
    wait_until_free(place)
    assert lease_holder(place) == ""
    second = taken(place, "ben")
    assert (second.fence, second.abandoned) == (2, True)
    for _ in range(2):
        with pytest.raises(LeaseLost, match="held the lease number 1, which expired, and number 2 was taken by proc"):
            first.commit(state(1, 1), Layout(1))
    assert seen(place) == (2, "process of ben", 0)
    first.release()
    assert seen(place) == (2, "process of ben", 0)
    second.commit(state(1, 2), Layout(1))
    second.release()
    with pytest.raises(LeaseLost):
        first.commit(state(1, 1), Layout(1))
    assert seen(place) == (2, "", 1)


@pytest.mark.slow
def test_a_holder_that_lives_keeps_it(place: Storage, taken: Callable[..., Lease]) -> None:
    first = taken(place, "aya", SHORT)
    time.sleep(SHORT + 2.5)
    with pytest.raises(StoreLocked):
        taken(place, "ben")
    first.commit(state(1, 1), Layout(1))
    assert seen(place) == (1, "process of aya", 1)


def test_the_same_checkout_need_not_wait(place: Storage, taken: Callable[..., Lease]) -> None:
    """The lock of its home says that the process before is dead."""
    taken(place, "aya").abandon()
    assert (taken(place, "aya").fence, taken(place, "aya").fence) == (2, 3)


def test_of_many_that_take_it_at_once_one_gets_it(place: Storage, taken: Callable[..., Lease]) -> None:
    taken(place, "zoe").release()
    got: list[int] = []
    refused: list[str] = []
    together = threading.Barrier(6)

    def take(name: str) -> None:
        together.wait()
        try:
            got.append(taken(place, name).fence)
        except StoreLocked as error:
            refused.append(error.message)

    threads = [threading.Thread(target=take, args=(f"checkout {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (got, len(refused)) == ([2], 5)


@pytest.mark.slow
@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_machine_does_not_matter(
    place: Storage, taken: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    with monkeypatch.context() as patch:
        paused(patch)
        taken(place, "aya", SHORT + 1)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours)
    with pytest.raises(StoreLocked):
        taken(place, "ben")
    wait_until_free(place)
    assert taken(place, "ben").fence == 2


def wait_until_free(place: Storage) -> None:
    found = read_head(place)
    assert found is not None
    while unchanged_for(place, HEAD) < timedelta(seconds=found[0].seconds + 1):
        time.sleep(0.1)


@pytest.mark.slow
def test_an_answer_that_is_lost_is_no_lost_lease(s3_faults: Faults, taken: Callable[..., Lease]) -> None:
    place = storage("s3://bucket/store", STORE)
    lease = taken(place, "aya")
    s3_faults.matching, s3_faults.methods, s3_faults.lost = "head/store", ("PUT",), 1
    lease.commit(state(1, 1), Layout(1))
    assert seen(place) == (1, "process of aya", 1)
    s3_faults.lost = 10  # more than it tries again: the state has moved, and nobody knows
    with pytest.raises(StoreUnreachable):
        lease.commit(state(2, 1), Layout(1))
    s3_faults.none()
    assert seen(place) == (1, "process of aya", 2)
    lease.release()
    assert seen(place) == (1, "", 2)


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_storage_that_fails_is_an_error_and_the_lease_stays(
    s3_faults: Faults, taken: Callable[..., Lease], status: int
) -> None:
    place = storage("s3://bucket/store", STORE)
    lease = taken(place, "aya")
    s3_faults.matching, s3_faults.methods, s3_faults.status = "head/store", ("PUT",), status
    with pytest.raises(StoreUnreachable, match="run the same command again"):
        lease.commit(state(1, 1), Layout(1))
    s3_faults.none()
    lease.commit(state(1, 1), Layout(1))
    assert seen(place) == (1, "process of aya", 1)


def test_a_head_of_something_else_is_refused(place: Storage, taken: Callable[..., Lease]) -> None:
    place.create(HEAD, b'{"fence": "one"}')
    with pytest.raises(StoreUrlRefused, match=r"head/store\.json"):
        taken(place, "aya")
