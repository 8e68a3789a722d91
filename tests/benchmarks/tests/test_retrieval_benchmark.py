"""The benchmark of retrieval: its scores match a calculation by hand, and its BM25 is the product's."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(request.param, BENCHMARKS / f"{request.param}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


ranking = pytest.mark.parametrize("script", ["ranking"], indirect=True)
retrieval = pytest.mark.parametrize("script", ["retrieval"], indirect=True)


@ranking
def test_recall_counts_marked_turns_among_the_first(script: ModuleType) -> None:
    ranked, marked = list("abcdefgh"), {"b", "f", "x"}
    assert script.recall_at(ranked, marked, 1) == 0
    assert script.recall_at(ranked, marked, 5) == pytest.approx(1 / 3)
    assert script.recall_at(ranked, marked, 8) == pytest.approx(2 / 3)


@ranking
def test_reciprocal_rank_is_that_of_the_first_marked_turn(script: ModuleType) -> None:
    assert script.reciprocal_rank(list("abc"), {"c", "b"}) == 1 / 2
    assert script.reciprocal_rank(list("abc"), {"x"}) == 0


@ranking
def test_scores_look_no_further_than_the_last_cut(script: ModuleType) -> None:
    ranked = [str(at) for at in range(80)]
    assert script.scores(ranked, {"4", "9", "24", "60"}) == [1 / 4, 2 / 4, 3 / 4, 3 / 4, 1 / 5]
    assert script.scores(ranked, {"60"}) == [0, 0, 0, 0, 0]


@ranking
def test_fusion_by_rank_adds_reciprocal_ranks(script: ModuleType) -> None:
    found = script.reciprocal_ranks(np.array([0.2, 0.9, 0.2]), k=60)
    assert found == pytest.approx([1 / 62, 1 / 61, 1 / 63])


@ranking
def test_standard_scores(script: ModuleType) -> None:
    assert script.z_scores(np.array([1.0, 2.0, 3.0])) == pytest.approx([-math.sqrt(1.5), 0, math.sqrt(1.5)])
    assert script.z_scores(np.array([2.0, 2.0])).tolist() == [0, 0]


@ranking
def test_intervals_hold_the_mean_repeat_and_are_paired(script: ModuleType) -> None:
    values = np.array([0.0, 1.0] * 200)
    found = script.bootstrapped(values, seed=1)
    assert found.mean == 0.5
    spread = 1.96 * 0.5 / math.sqrt(400)
    assert (found.low, found.high) == pytest.approx((0.5 - spread, 0.5 + spread), abs=0.01)
    assert script.bootstrapped(values, seed=1) == found
    assert script.bootstrapped(values, seed=2) != found
    shifted = script.bootstrapped(values + 0.25 - values, seed=1)
    assert (shifted.low, shifted.high) == (0.25, 0.25)


@retrieval
def test_bm25_is_that_of_the_formula(script: ModuleType) -> None:
    found = script.Bm25(pl.Series(["red kite", "red red sun", "tea"])).scores("red moon")
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    once = idf * 1 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2))
    twice = idf * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert found == pytest.approx([once, twice, 0])


@retrieval
def test_a_difference_is_to_the_best_plain_method_at_each_measure(script: ModuleType) -> None:
    def one(*scores: float) -> object:
        return script.Measured(np.array([scores, scores]), np.array([10.0, 20.0]))

    results = {"a": one(0.1, 0.6, 0.7, 0.8, 0.5), "b": one(0.2, 0.5, 0.7, 0.8, 0.5), "ours": one(0.3, 0.7, 0.8, 0.9, 1)}
    lines = script.differences(results, ["a", "b"], seed=1).splitlines()
    assert lines[2].split(" | ")[1:3] == ["b", "a"]
    assert [cell.split()[0] for cell in lines[3].strip("| ").split(" | ")[1:]] == [
        "+10.0", "+10.0", "+10.0", "+10.0", "+50.0"
    ]  # fmt: skip
    assert "| 15.0 | 19.9 |" in script.table(results, seed=1)
