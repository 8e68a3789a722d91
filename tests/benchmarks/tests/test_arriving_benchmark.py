"""The benchmark of records that arrive in parts runs real nights and counts the pairs of all records."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.tests.test_deduplication_benchmarks import BENCHMARKS, _script

pytestmark = pytest.mark.slow


@pytest.fixture
def arriving(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return _script("arriving")


def test_every_part_is_followed_by_a_night(
    arriving: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "The blue rowing boat with the brass oarlocks lies at the north pier of the old harbour"
    rows = [{"observation_id": f"r{n}", "title": text if n < 2 else f"Note {n} {n * 17}"} for n in range(8)]
    lines = [json.dumps({"observed_at": "2026-01-01", "source_uri": f"s{n}"} | row) for n, row in enumerate(rows)]
    (tmp_path / "observations.jsonl").write_text("\n".join(lines))
    (tmp_path / "pairs.csv").write_text("r0,r1\nr6,r7\n")
    arriving.main([str(tmp_path), "--parts", "2"])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("| | 2 | 1 | 1.000 | 0.500 | 0.667 |")
