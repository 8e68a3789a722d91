"""Checkouts of a store in Azure Blob Storage that fails, answers with half a body, or answers slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.model.errors import StoreLocked, StoreUnreachable
from memstate_core.night.checkout.pull import pull
from tests.core.night.checkout.conftest import command, drop, observations, pair, run, run_when_free, unnamed
from tests.core.storage.azure import KEY, empty_container
from tests.core.storage.s3 import Faults, fault_proxy

pytestmark = pytest.mark.slow
REQUESTS = [("head/store", "GET"), ("head/store", "PUT"), ("objects/", "PUT"), ("lists/", "PUT"), ("batch", "POST")]


@pytest.fixture
def faulty(azure_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Faults]]:
    """The URL of an empty place, and the faults of a proxy before it, which the environment names."""
    url = f"{empty_container(azure_endpoint, monkeypatch)}/a store"
    with fault_proxy(azure_endpoint) as (address, faults):
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", address)
        yield url, faults


@pytest.mark.parametrize(
    ("matching", "method", "status"), [(*request, (403, 500, 503)[n % 3]) for n, request in enumerate(REQUESTS)]
)
def test_a_storage_that_fails_loses_and_doubles_nothing(
    faulty: tuple[str, Faults], tmp_path: Path, matching: str, method: str, status: int
) -> None:
    url, faults = faulty
    aya, ben = pair(tmp_path, url, 1.0)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    drop(aya, "more.jsonl", "two")
    faults.matching, faults.methods, faults.status = matching, (method,), status
    with pytest.raises(StoreUnreachable) as caught:
        run(aya)
    assert KEY not in caught.value.message
    faults.none()
    run_when_free(ben)
    run(aya)
    pull(ben)
    assert observations(aya) == observations(ben) == ["one", "two"]
    assert unnamed(ben, url) == set()


@pytest.mark.parametrize("matching", ["head/store", "lists/", "objects/"])
def test_a_partial_body_changes_nothing(faulty: tuple[str, Faults], tmp_path: Path, matching: str) -> None:
    url, faults = faulty
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    run(ben)
    drop(aya, "more.jsonl", "two")
    run(aya)
    faults.matching, faults.methods, faults.cut = matching, ("GET",), 0.5
    with pytest.raises(StoreUnreachable):
        pull(ben)
    assert observations(ben) == ["one"]
    faults.none()
    pull(ben)
    assert observations(ben) == ["one", "two"]


def test_a_slow_storage_is_waited_for_under_the_lease(faulty: tuple[str, Faults], tmp_path: Path) -> None:
    """Each answer takes half of the time after which the lease may be taken; the command takes many times as long."""
    url, faults = faulty
    aya, ben = pair(tmp_path, url, 1.0)
    run(aya)
    drop(aya, "dump.jsonl", "one")
    faults.seconds = 0.5
    with command(aya), pytest.raises(StoreLocked):
        run(ben)
    faults.none()
    run(ben)
    assert observations(aya) == observations(ben) == ["one"]
    assert unnamed(ben, url) == set()
