"""The benchmark of several replicas: what their rounds give together, by the rate of one in the same round."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest


def test_rates_add_up_and_ratios_are_those_of_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("replica_serving")
    round_of, given = script.questions.Round, list[tuple[int, int]]()

    def measure(server: int, _: Path, connections: int, __: int, ___: int) -> object:
        given.append((server, connections))
        return round_of(100.0 + 100 * server, 1.0 + server, 5.0, 2.0 + 2 * server)

    monkeypatch.setattr(script.questions, "measure", measure)
    both = script.asked([0, 1], tmp_path / "questions", 8, 1, 7)
    assert sorted(given) == [(0, 4), (1, 4)]
    assert (both.a_second, both.p50) == (300.0, 2.0)
    assert both.cpu_ms == pytest.approx((100 * 2 + 200 * 4) / 300)
    rates = {(1, 0): 100.0, (2, 0): 150.0, (1, 1): 50.0, (2, 1): 100.0, (1, 2): 10.0, (2, 2): 30.0}
    found = {place: round_of(rate, 1.0, 2.0, 3.0) for place, rate in rates.items()}
    results = [script._result(count, 1, 3, found) for count in (1, 2)]
    assert [(each.a_second, each.ratio) for each in results] == [(50.0, 1.0), (100.0, 2.0)]
    assert script.table(results).splitlines()[-1] == "| 2 | 100.0 | 2.00 | 1.0 | 2.0 | 3.00 |"
