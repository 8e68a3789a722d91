"""The benchmark of writes through replicas: every request is written both ways, fetched, imported and removed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest


def test_every_request_takes_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("replica_writes")
    costs = script.measured(f"file://{tmp_path}/objects", 12, 4, tmp_path)
    assert [cost.step for cost in costs][1:] == ["an object at the URL", "the fetch", "the import", "the removal"]
    assert all(cost.wall_ms > 0 and cost.rate > 0 for cost in costs)
    files = (tmp_path / "local" / "inbox").glob("api-*.jsonl")
    assert sum(len(path.read_bytes().splitlines()) - 1 for path in files) == 12
    assert [path for path in (tmp_path / "objects" / "inbox").iterdir() if path.is_file()] == []
    assert script.table(costs).count("\n") == 6
