"""The benchmark of changes of the number of shards, on a small store."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_both_directions_are_measured_and_give_the_same_state(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("resharding")
    script.main(["--topics", "60", "--scopes", "3", "--shards", "2"])
    lines = capsys.readouterr().out.splitlines()
    names = [line.split("|")[1].strip() for line in lines if line.startswith("| re")]
    assert names == ["rebuild, 1 shard", "reshard 1 → 2", "rebuild, 2 shards", "reshard 2 → 1"]
    assert any("topics in 3 scopes" in line for line in lines)
