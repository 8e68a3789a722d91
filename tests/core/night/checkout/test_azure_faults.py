"""Checkouts of a store in Azure Blob Storage that fails, answers with half a body, or answers slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.night.checkout.faulty_storage import (
    half_a_body_changes_nothing,
    loses_and_doubles_nothing,
    slow_answers_are_waited_for,
)
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
    loses_and_doubles_nothing(tmp_path, *faulty, KEY, matching=matching, method=method, status=status)


@pytest.mark.parametrize("matching", ["head/store", "lists/", "objects/"])
def test_a_partial_body_changes_nothing(faulty: tuple[str, Faults], tmp_path: Path, matching: str) -> None:
    half_a_body_changes_nothing(tmp_path, *faulty, matching)


def test_a_slow_storage_is_waited_for_under_the_lease(faulty: tuple[str, Faults], tmp_path: Path) -> None:
    slow_answers_are_waited_for(tmp_path, *faulty)
