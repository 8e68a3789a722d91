"""The conditions of rules beside CEL: the same verdicts where no value is missing, and earlier errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "conditions.py"


@pytest.fixture(scope="module")
def conditions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conditions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["conditions"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(3))
def test_complete_rows_get_the_verdicts_of_cel(conditions: ModuleType, seed: int) -> None:
    assert conditions.verdicts(60, 0.0, seed) == {"same": 1200}


def test_missing_values_have_a_verdict_here_and_an_error_in_cel(conditions: ModuleType) -> None:
    found = conditions.verdicts(100, 0.3, 7)
    assert found["CEL error"] > 0
    assert found.total() == 2000


def test_every_mistake_is_found_here_when_the_policy_is_read_and_by_cel_often_later(conditions: ModuleType) -> None:
    some = conditions.rows(conditions.Random(1), 20, 0.0)
    by_cel = {mistake.name: conditions.noticed_by_cel(mistake, some) for mistake in conditions.MISTAKES}
    for mistake in conditions.MISTAKES:
        error = conditions.noticed_by_us(mistake)
        assert (mistake.name, error and error.column) == (mistake.name, mistake.column)
    assert by_cel["misspelt column"] == "evaluating, without a position, on 20 of 20 rows"
    assert by_cel["number beside a text"] == "never"
    assert by_cel["parenthesis not closed"] == "compiling, with a position"


def test_the_benchmark_prints_its_three_tables(
    conditions: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conditions, "SPEED_ROWS", 50)
    conditions.main(["--conditions", "10", "--seed", "3"])
    printed = capsys.readouterr().out
    assert "| complete | 200 | 200 | 0 | 0 |" in printed
    assert "| misspelt column, `sailence < 0.2` | column 1: found sailence (did you mean salience?) |" in printed
    assert [line.split(" |")[0] for line in printed.splitlines()[-2:]] == ["| ours", "| CEL"]
