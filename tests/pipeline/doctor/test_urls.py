"""`memstate doctor` tries what it needs of the URLs of a store and of its publication, and leaves nothing there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memstate_core.run.store import Store, open_store
from memstate_core.storage.purpose import PUBLICATION, STORE, Purpose
from memstate_core.storage.storage import storage
from memstate_pipeline.doctor.checkout import remote_store
from memstate_pipeline.doctor.data import publication
from memstate_pipeline.doctor.finding import Finding
from tests.core.storage.s3 import Faults

Examined = tuple[Purpose, str, Callable[[Store], Finding]]
both = pytest.mark.parametrize(
    "examined",
    [(STORE, "MEMSTATE_STORE_URL", remote_store), (PUBLICATION, "MEMSTATE_PUBLISH_URL", publication)],
    ids=["store", "publication"],
)


def found(home: Path, examined: Examined, url: str) -> Finding:
    return examined[2](open_store(home, {examined[1]: url}))


@both
def test_a_url_that_can_be_used_is_left_as_it_was(url: str, tmp_path: Path, examined: Examined) -> None:
    finding = found(tmp_path / "home", examined, url)
    assert finding.ok, finding.detail
    assert storage(url, examined[0]).listed("") == {}


@both
def test_a_url_that_ignores_conditions_of_puts_is_named(s3_faults: Faults, tmp_path: Path, examined: Examined) -> None:
    s3_faults.left_out = ("if-match", "if-none-match")
    finding = found(tmp_path / "home", examined, "s3://bucket/a store")
    assert not finding.ok
    assert "4 succeeded. Expected storage that honours conditional puts" in finding.detail


@both
def test_a_url_that_can_only_be_read_is_named(s3_faults: Faults, tmp_path: Path, examined: Examined) -> None:
    s3_faults.methods, s3_faults.status = ("PUT",), 403
    finding = found(tmp_path / "home", examined, "s3://bucket/a store")
    assert not finding.ok
    assert "s3://bucket/a store failed" in finding.detail


@both
def test_a_folder_of_something_else_is_named_and_left_alone(tmp_path: Path, examined: Examined) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").touch()
    for _ in range(2):
        finding = found(tmp_path / "home", examined, f"file://{tmp_path}/letters")
        assert not finding.ok
        assert "it holds other files, such as one.txt" in finding.detail
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["one.txt"]
