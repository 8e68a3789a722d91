"""Benchmarks on real stores run real nights and count the pairs of all records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.tests.test_deduplication_benchmarks import BENCHMARKS, _script

pytestmark = pytest.mark.slow

TEXT = "The blue rowing boat with the brass oarlocks lies at the north pier of the old harbour"
RowsOf = Callable[..., list[list[str]]]


@pytest.fixture
def rows_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> RowsOf:
    """The rows that a benchmark prints for records with labels, without the name of the set."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def run(name: str, records: Sequence[dict[str, Any]], pairs: str, *options: str) -> list[list[str]]:
        lines = [json.dumps(record | {"observation_id": f"r{n}"}) for n, record in enumerate(records)]
        (tmp_path / "observations.jsonl").write_text("\n".join(lines))
        (tmp_path / "pairs.csv").write_text(pairs)
        _script(name).main([str(tmp_path), *options])
        _, _, *rows = capsys.readouterr().out.splitlines()
        return [[cell.strip() for cell in row.strip("|").split("|")][1:] for row in rows]

    return run


def test_every_part_is_followed_by_a_night(rows_of: RowsOf) -> None:
    titles = [TEXT if n < 2 else f"Note {n} {n * 17}" for n in range(8)]
    records = [{"title": t, "observed_at": "2026-01-01", "source_uri": f"s{n}"} for n, t in enumerate(titles)]
    rows = rows_of("arriving", records, "r0,r1\nr6,r7\n", "--parts", "2")
    assert rows == [["2", "1", "1.000", "0.500", "0.667"]]


def test_suggested_pairs_are_judged_until_none_is_left(rows_of: RowsOf) -> None:
    """Of two pairs with equal titles and other owners, which only an answer can merge, one is true."""
    pairs = ("The blue rowing boat with the brass oarlocks", "Recipe for the plum cake of aunt Hildegard")
    titled = [{"title": pairs[n // 2], "fields": [{"name": "owner", "value": "xyzw"[n] * 4}]} for n in range(4)]
    records = [*titled, *({"title": f"Note {n} {n * 17}"} for n in range(8))]
    common = {"observed_at": "2026-01-01", "placement": "new_topic"}
    rows = rows_of("teaching", [common | record for record in records], "r0,r1\n", "--answers", "5", "--step", "1")
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert rows[0][1:] == ["0", "0.000", "0.000", "0.000"]
    assert rows[-1][1:] == ["1", "1.000", "1.000", "1.000"]
