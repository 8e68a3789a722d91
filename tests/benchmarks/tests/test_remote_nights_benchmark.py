"""The benchmark of nights of a store at a URL: both homes come to the same state, and every night is counted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_both_homes_make_the_same_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("remote_nights")
    rows = script.batches(tmp_path, 60, 3)
    assert [len(each.splitlines()) for each in rows] == [30, 15, 15]
    found = script.measured(f"file://{tmp_path}/url", tmp_path, rows)
    assert [len(costs) for costs in found.values()] == [2, 2]
    assert (tmp_path / "url" / "head" / "store.json").is_file()
    assert not (tmp_path / "0" / "checkout.json").exists()
    assert script.report(found, 1 << 20).splitlines()[4].startswith("| ratio | ")
