"""Fixtures of all tests: each kind of storage, with a server for the tests of a module, and faults on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from tests.core.storage.azure import azure_server, empty_container
from tests.core.storage.s3 import Faults, empty_bucket, fault_proxy, s3_server, use_endpoint


@pytest.fixture(scope="module")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks the protocol of S3."""
    with s3_server(tmp_path_factory.mktemp("moto")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def azure_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks the protocol of Azure Blob Storage."""
    with azure_server(tmp_path_factory.mktemp("azurite")) as endpoint:
        yield endpoint


def empty_place(kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty place in a kind of storage, to which the environment gives access."""
    if kind == "file":
        return f"file://{tmp_path}/published"
    if kind == "az":
        return f"{empty_container(request.getfixturevalue('azure_endpoint'), monkeypatch)}/a store"
    empty_bucket(request.getfixturevalue("s3_endpoint"), monkeypatch)
    return "s3://bucket/a store"


@pytest.fixture(params=[pytest.param("s3", marks=pytest.mark.slow), pytest.param("az", marks=pytest.mark.slow), "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty place in each kind of storage that a server or a folder can stand for; servers are slow."""
    return empty_place(request.param, request, tmp_path, monkeypatch)


@pytest.fixture
def s3_faults(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """The faults of a proxy before an empty bucket, which the environment names."""
    empty_bucket(s3_endpoint, monkeypatch)
    with fault_proxy(s3_endpoint) as (address, faults):
        use_endpoint(address, monkeypatch)
        yield faults


def copied(source: str, target: str) -> None:
    """Copies a store at a URL."""
    here, there = (storage(each, STORE) for each in (source, target))
    for name in [*here.sizes("data"), *here.sizes("head")]:
        there.write(name, b"".join(here.blocks(name)))


def fetched(url: str, folder: Path) -> Path:
    """Everything that lies at a URL, in a folder."""
    there = storage(url, STORE)
    for name in [*there.sizes("data"), *there.sizes("head")]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"".join(there.blocks(name)))
    return folder
