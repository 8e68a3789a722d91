"""The benchmark of Dagster's scheduler and queue, on a small store: every shard has its run taken from the queue."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_every_shard_is_submitted_and_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    import_module("scheduling").main([str(tmp_path / "home"), "--shards", "3"])
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("| 3 shards | wall, s ")
    steps = ["evaluate the schedule", "submit its runs to the queue", "take them from the queue", "all"]
    assert [row.split("|")[1].strip() for row in rows] == steps
