"""Object storage for the tests of a module: a server of its own, and faults on request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.storage.s3 import Faults, empty_bucket, fault_proxy, s3_server, use_endpoint


@pytest.fixture(scope="module")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks the protocol of S3."""
    with s3_server(tmp_path_factory.mktemp("moto")) as endpoint:
        yield endpoint


@pytest.fixture
def s3_faults(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """The faults of a proxy before an empty bucket, which the environment names."""
    empty_bucket(s3_endpoint, monkeypatch)
    with fault_proxy(s3_endpoint) as (address, faults):
        use_endpoint(address, monkeypatch)
        yield faults
