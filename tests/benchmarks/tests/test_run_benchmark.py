"""The runner: targets are compared, the table names what was missed, unknown names are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module("run")


def test_results_are_written_with_the_machine_and_what_was_missed(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = [script.Measure("rate", 4.0, "times", least=5.0), script.Measure("p50", 4.0, "ms", most=8.0)]
    monkeypatch.setattr(script, "BENCHMARKS", {"made": lambda _: [*measures, script.Measure("plain", 1.0, "s")]})
    script.main(["made", "--small", "--out", str(tmp_path)])
    document = json.loads((tmp_path / "results.json").read_text())
    assert [each["met"] for each in document["results"]["made"]] == [False, True, None]
    assert document["small"]
    assert document["machine"]["cores"] >= 1
    text = (tmp_path / "README.md").read_text()
    assert "| made | rate | 4.00 | times | at least 5 | no |" in text
    assert "| made | p50 | 4.00 | ms | at most 8 | yes |" in text


def test_an_unknown_benchmark_is_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit):
        script.main(["nothing"])
