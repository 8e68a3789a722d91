"""The benchmark of bounded checkouts, on a small store: a night in each kind of home, and less fetched in one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_the_shard_alone_is_less_than_the_whole_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("bounded_checkouts")
    sizes = ["--shards", "3", "--topics", "20", "--changes", "2", "--rounds", "1"]
    script.main([str(tmp_path / "home"), *sizes])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    head, _, whole, bounded, ratio = lines
    assert head.startswith("| a new home has | wall, s ")
    assert whole.startswith("| the whole store | ")
    assert bounded.startswith("| the shard alone | ")
    *_, fetched, disk, _ = (each.strip() for each in ratio.split("|"))
    assert float(fetched) < 0.7
    assert float(disk) < 0.9
