"""The benchmark of nights at once, on a small store: a night with each number, each of every shard."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import served

pytestmark = pytest.mark.slow


def test_every_number_has_its_nights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script, home = import_module("nights_at_once"), tmp_path / "home"
    sizes = ["--shards", "2", "--topics", "20", "--changes", "2", "--rounds", "1"]
    script.main([str(home), *sizes, "--at-once", "1", "2"])
    head, _, *rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert head.startswith("| nights at once, of 2 | wall, s ")
    assert [row.split("|")[1].strip() for row in rows] == ["1", "2"]
    assert rows[0].endswith("| 1.00 | 1.00 |"), "others are compared with the first"
    store = open_store(home, {})
    assert [each.manifest.number for each in served(store.home, store.shards)] == [4, 4]  # made, caught up, one of each
