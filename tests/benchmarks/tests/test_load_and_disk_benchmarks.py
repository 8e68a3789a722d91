"""The benchmarks of a first load and of the disk, on small stores: what is compared is the same, links count once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import served
from memstate_core.state.graph import open_graph
from memstate_core.state.state_hash import state_hash

Load = Callable[[str], ModuleType]


@pytest.fixture
def script() -> Iterator[Load]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module


@pytest.mark.slow
def test_the_copy_has_what_the_snapshot_has(script: Load, tmp_path: Path) -> None:
    home = script("changed_nights").made(tmp_path / "home", 20, 2)
    (snapshot,) = served(open_store(home, {}).home, ["s0"])
    assert script("first_load")._copied(snapshot, tmp_path) > 0
    with open_graph(tmp_path / "s0.kuzu", read_only=True) as graph:
        assert state_hash(graph) == snapshot.manifest.state_hash


@pytest.mark.slow
def test_a_first_load_is_beside_the_copy(script: Load, tmp_path: Path) -> None:
    rate, times, importing, night, copying = script("first_load").measured(tmp_path, 60, 12, 2)
    assert rate.value == pytest.approx(60 / (importing.value + night.value))
    assert times.value == pytest.approx((importing.value + night.value) / copying.value)


@pytest.mark.slow
def test_both_stores_have_the_same_input(script: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = script("disk_growth")
    grown, topic, fresh, *parts = disk.measured(tmp_path, 20, 10, 2, 3)
    assert grown.value == pytest.approx(topic.value / fresh.value)
    assert {each.name.partition(",")[0] for each in parts} >= {"snapshots", "dagster"}
    monkeypatch.setattr(disk, "change", lambda *_: None)
    with pytest.raises(AssertionError, match="the same input"):
        disk.measured(tmp_path, 20, 10, 1, 3)


def test_bytes_of_linked_files_count_once(script: Load, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    alone = script("disk_growth")._bytes(tmp_path)
    assert alone >= 100_000
    os.link(tmp_path / "one", tmp_path / "other")
    assert script("disk_growth")._bytes(tmp_path) == alone
    (tmp_path / "third").write_bytes(b"y" * 100_000)
    assert script("disk_growth")._bytes(tmp_path) >= alone + 100_000
