"""The comparison of searches for near pairs: the exact product finds what a plain loop finds, and ours the same."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest


def test_both_searches_find_the_pairs_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("near_pairs")
    draws = np.random.default_rng(7)
    rows = draws.normal(size=(90, 16))
    rows[60:] = rows[:30] + draws.normal(scale=0.4, size=(30, 16))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    monkeypatch.setattr(script, "_BLOCK", 32)
    expected = [a * 90 + b for a, b in combinations(range(90), 2) if float(vectors[a] @ vectors[b]) >= 0.8]
    assert 10 < len(expected) < 200
    assert script.exact(vectors, 0.8).tolist() == script.ours(vectors, 0.8).tolist() == expected


def test_without_semhash_its_target_is_shown_as_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script, run = import_module("near_pairs"), import_module("run")
    monkeypatch.setattr(script, "find_spec", lambda _: None)
    shown = run.table({}, {"pairs": script.measured(200, 0.8)})
    (row,) = [line for line in shown.splitlines() if "semhash" in line]
    assert row.endswith("| semhash missing, target not measured | times | at least 5 |  |")
