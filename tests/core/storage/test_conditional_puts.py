"""The trial of conditional puts: every kind of storage passes it, nothing is left, and ignored conditions are found."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memstate_core.model.errors import ConditionalPutsIgnored, StoreUnreachable
from memstate_core.model.scope import Layout
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.held import unchanged_for
from memstate_core.storage.lease import take_lease
from memstate_core.storage.purpose import BACKUPS, PUBLICATION, STORE, Purpose
from memstate_core.storage.shard_lease import require_no_nights
from memstate_core.storage.storage import storage
from tests.core.storage.s3 import Faults

REQUESTS = 17
IGNORED = {
    ("if-match", "if-none-match"): "of 4 writers that created one object at once, 4 succeeded",
    ("if-none-match",): "of 4 writers that created one object at once, 4 succeeded",
    ("if-match",): "of 4 writers that replaced one version of an object at once, 4 succeeded",
}


@pytest.mark.parametrize("purpose", [STORE, PUBLICATION, BACKUPS])
def test_every_kind_of_storage_passes_and_nothing_is_left(url: str, purpose: Purpose) -> None:
    place = storage(url, purpose)
    for _ in range(3):
        require_conditional_puts(place, purpose.mark)
        assert place.listed("") == {}


@pytest.mark.slow
@pytest.mark.parametrize("left_out", IGNORED, ids=" ".join)
def test_a_storage_that_ignores_conditions_is_refused(s3_faults: Faults, left_out: tuple[str, ...]) -> None:
    place = storage("s3://bucket/a store", STORE)
    s3_faults.left_out = left_out
    with pytest.raises(ConditionalPutsIgnored, match=IGNORED[left_out]):
        require_conditional_puts(place, STORE.mark)
    assert place.listed("") == {}


def test_a_trial_takes_few_requests(s3_faults: Faults) -> None:
    require_conditional_puts(storage("s3://bucket/a store", STORE), STORE.mark)
    assert len(s3_faults.seen) <= REQUESTS, s3_faults.seen


@pytest.mark.slow
@pytest.mark.parametrize(("method", "status"), [("PUT", 403), ("POST", 403), ("PUT", 503)])
def test_a_storage_that_cannot_be_written_is_named(s3_faults: Faults, method: str, status: int) -> None:
    s3_faults.methods, s3_faults.status = (method,), status
    with pytest.raises(StoreUnreachable):
        require_conditional_puts(storage("s3://bucket/a store", STORE), STORE.mark)


def test_an_answer_that_is_lost_is_no_ignored_condition(s3_faults: Faults) -> None:
    """The put is tried again, and refused since it succeeded the first time."""
    place = storage("s3://bucket/a store", STORE)
    for lost in (1, 2, 4):
        s3_faults.methods, s3_faults.lost = ("PUT",), lost
        require_conditional_puts(place, STORE.mark)
    assert place.listed("") == {}


def test_a_listing_that_lags_behind_leaves_nothing(s3_faults: Faults) -> None:
    place = storage("s3://bucket/a store", STORE)
    s3_faults.hidden = "probe-"
    require_conditional_puts(place, STORE.mark)
    s3_faults.none()
    assert place.listed("") == {}


@pytest.mark.parametrize("name", ["clock-0123456789abcdef", "probe-0123456789abcdef", ".probe-0123456789abcdef.lock"])
@pytest.mark.parametrize("by", ["a lease that is judged", "a command that has the lease", "a trial"])
def test_what_a_killed_process_left_is_removed_an_hour_later(tmp_path: Path, name: str, by: str) -> None:
    place = storage(f"file://{tmp_path}/store", STORE)
    others = {"head/shard-s0.json", "head/clock-of-somebody", "data/1/objects/ab/probe-0123456789abcdef"}
    for each in (f"head/{name}", *others):
        place.create(each, b'{"fence": 1, "holder": "", "checkout": "", "token": "", "seconds": 1}')
    lease = take_lease(place, "aya", "a test", 600.0, Layout(1))
    lease.abandon()
    steps = {
        "a lease that is judged": lambda: unchanged_for(place, "head/store.json"),
        "a command that has the lease": lambda: require_no_nights(place, "aya"),
        "a trial": lambda: require_conditional_puts(place, STORE.mark),
    }
    kept = set(place.listed("head")) | others
    steps[by]()
    assert set(place.listed("")) == kept
    old = time.time() - 3700
    for each in kept - {"head/store.json"}:
        os.utime(tmp_path / "store" / each, (old, old))
    steps[by]()
    assert set(place.listed("")) == kept - {f"head/{name}"}
