"""The benchmark of nights that are skipped, on a small store."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_it_counts_the_nights_of_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("skipped_nights")
    script.main([str(tmp_path / "home"), "--topics", "40", "--a-scope", "5", "--shards", "2", "--changes", "3"])
    lines = capsys.readouterr().out.splitlines()
    nights = [line.rpartition(": ")[2] for line in lines if "shards with a night" in line]
    assert nights == ["2.00 of 2", "0.00 of 2", "2.00 of 2", "1.00 of 2"]
    assert lines[-1].startswith("the ladder asked about every topic")
