"""Checkouts of a store whose storage fails, answers slowly, or lists late what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.model.errors import ConditionalPutsIgnored, StoreUnreachable
from memstate_core.night.checkout.pull import pull
from memstate_core.storage.lease import take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from tests.core.night.checkout.conftest import (
    checkout,
    drop,
    names,
    observations,
    pair,
    run,
    run_when_free,
    unnamed,
)
from tests.core.night.checkout.faulty_storage import (
    half_a_body_changes_nothing,
    loses_and_doubles_nothing,
    slow_answers_are_waited_for,
)
from tests.core.storage.s3 import SECRET, Faults, use_endpoint

URL = "s3://bucket/a store"
REQUESTS = [("head/store", "GET"), ("head/store", "PUT"), ("objects/", "PUT"), ("lists/", "PUT"), ("delete", "POST")]
REQUESTS += [(f"list-type.*{folder}", "GET") for folder in ("head", "inbox", "data")]
FETCHES = ["lists/", "objects/", "inbox/more"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("matching", "method", "status"),
    [(*request, status) for n, request in enumerate(REQUESTS) for status in (403, (500, 503)[n % 2])],
)
def test_a_storage_that_fails_loses_and_doubles_nothing(
    s3_faults: Faults, tmp_path: Path, matching: str, method: str, status: int
) -> None:
    loses_and_doubles_nothing(tmp_path, URL, s3_faults, SECRET, matching=matching, method=method, status=status)


@pytest.mark.slow
@pytest.mark.parametrize("matching", FETCHES)
@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_storage_that_fails_while_a_machine_fetches_loses_and_doubles_nothing(
    s3_faults: Faults, tmp_path: Path, matching: str, status: int
) -> None:
    """A list, a file of the state, and a dump at the URL."""
    aya, ben = pair(tmp_path, URL, 1.0)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    place = storage(URL, STORE)
    place.write("inbox/more.jsonl", (aya.home.processed / "dump.jsonl").read_bytes().replace(b"one", b"two"))
    s3_faults.matching, s3_faults.methods, s3_faults.status = matching, ("GET",), status
    with pytest.raises(StoreUnreachable):
        run(ben)
    s3_faults.none()
    run_when_free(ben)
    pull(aya)
    assert observations(aya) == observations(ben) == ["one", "two"]
    assert (unnamed(ben, URL), place.sizes("inbox")) == (set(), {})


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [("if-match", "if-none-match"), ("if-none-match",), ("if-match",)], ids=" ".join)
def test_nothing_is_sent_where_conditions_of_puts_are_ignored(
    s3_faults: Faults, tmp_path: Path, left_out: tuple[str, ...]
) -> None:
    """Two machines would overwrite the state of each other there, and neither would notice."""
    aya, _ = pair(tmp_path, URL)
    drop(aya, "dump.jsonl", "one")
    s3_faults.left_out = left_out
    with pytest.raises(ConditionalPutsIgnored, match="behind proxies that pass on these headers"):
        run(aya)
    assert storage(URL, STORE).listed("") == {}
    assert names(aya.home.inbox) == ["dump.jsonl"]
    s3_faults.none()
    run(aya)
    assert observations(aya) == ["one"]


@pytest.mark.slow
def test_conditional_puts_are_tried_once_for_a_store(s3_faults: Faults, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, URL)
    run(aya)
    assert [each for each in s3_faults.seen if "head/probe-" in each]
    s3_faults.seen.clear()
    for store in (ben, aya):
        drop(store, "dump.jsonl", store.home.root.name)
        run(store)
    assert [each for each in s3_faults.seen if "head/probe-" in each] == []


@pytest.mark.slow
@pytest.mark.parametrize("matching", ["head/store", "lists/", "objects/"])
def test_a_partial_body_changes_nothing(s3_faults: Faults, tmp_path: Path, matching: str) -> None:
    half_a_body_changes_nothing(tmp_path, URL, s3_faults, matching)


@pytest.mark.slow
def test_a_storage_that_is_down_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_endpoint("http://127.0.0.1:9", monkeypatch)
    aya = checkout(tmp_path / "aya", URL)
    drop(aya, "dump.jsonl", "one")
    with pytest.raises(StoreUnreachable):
        run(aya)
    assert names(aya.home.inbox) == ["dump.jsonl"]


@pytest.mark.slow
def test_a_slow_storage_is_waited_for_under_the_lease(s3_faults: Faults, tmp_path: Path) -> None:
    slow_answers_are_waited_for(tmp_path, URL, s3_faults)


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["head/clock-", "head/store"])
def test_a_lease_that_a_listing_does_not_show_is_not_taken(s3_faults: Faults, tmp_path: Path, hidden: str) -> None:
    """Whether its holder lives cannot be known then; the same command takes it later."""
    aya, ben = pair(tmp_path, URL, 1.0)
    run(aya)
    dead = take_lease(storage(URL, STORE), "another", "a machine that died", 1.0, aya.layout)
    dead.abandon()
    drop(ben, "dump.jsonl", "one")
    s3_faults.hidden = hidden
    with pytest.raises(StoreUnreachable, match="it does not list"):
        run(ben)
    assert names(ben.home.inbox) == ["dump.jsonl"]
    s3_faults.none()
    run_when_free(ben)
    assert observations(ben) == ["one"]


def test_what_a_listing_does_not_show_yet_is_taken_and_removed_later(s3_faults: Faults, tmp_path: Path) -> None:
    """A dump at the URL, and what a writer that was killed left there."""
    aya, ben = pair(tmp_path, URL)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    place = storage(URL, STORE)
    place.write("data/1/objects/ab/orphan", b"sent by a writer that was killed")
    place.write("inbox/more.jsonl", (aya.home.processed / "dump.jsonl").read_bytes().replace(b"one", b"two"))
    s3_faults.hidden = "."
    run(ben)
    assert observations(ben) == ["one"]
    s3_faults.none()
    assert "data/1/objects/ab/orphan" in unnamed(ben, URL)
    run(ben)
    assert observations(ben) == ["one", "two"]
    assert (unnamed(ben, URL), place.sizes("inbox")) == (set(), {})
