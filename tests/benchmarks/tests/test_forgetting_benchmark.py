"""The benchmark of forgetting: its policies follow their definitions, and it runs on a tiny trace."""

from __future__ import annotations

import importlib.util
import json
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.forget.eviction_fit import fit_curve

BENCHMARKS = Path(__file__).parents[1]
short = st.lists(st.integers(0, 6), min_size=1, max_size=40)
capacities = st.integers(1, 5)


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


replacement = _script("replacement")
active_set = _script("active_set")


def plain_lru(keys: list[int], capacity: int) -> list[bool]:
    """A key is a hit if fewer than `capacity` others were requested since."""
    hits = []
    for row, key in enumerate(keys):
        past = keys[:row]
        since = past[len(past) - past[::-1].index(key) :] if key in past else None
        hits.append(since is not None and len(set(since)) < capacity)
    return hits


def plain_lfu(keys: list[int], capacity: int) -> list[bool]:
    held: set[int] = set()
    hits = []
    for row, key in enumerate(keys):
        hits.append(key in held)
        past = keys[: row + 1]
        worth = {k: (past.count(k), max(i for i, one in enumerate(past) if one == k)) for k in held | {key}}
        held = set(sorted(worth, key=lambda k: worth[k])[-capacity:])
    return hits


def most_possible(keys: list[int], capacity: int) -> int:
    """By trying every set that could be held after each request."""
    most = {frozenset[int](): 0}
    for key in keys:
        after: dict[frozenset[int], int] = {}
        for held, hits in most.items():
            hits += key in held
            full = held | {key}
            for one in [held] + [frozenset(kept) for kept in combinations(full, min(capacity, len(full)))]:
                after[one] = max(after.get(one, 0), hits)
        most = after
    return max(most.values())


def plain_arc(keys: list[int], capacity: int) -> list[bool]:
    """The paper's figure 4, with lists from the least to the most recently used."""
    t1: list[int] = []
    t2: list[int] = []
    b1: list[int] = []
    b2: list[int] = []
    p, hits = 0.0, []

    def replace(in_b2: bool) -> None:
        if t1 and (len(t1) > p or (in_b2 and len(t1) == p)):
            b1.append(t1.pop(0))
        elif t2:
            b2.append(t2.pop(0))
        else:
            b1.append(t1.pop(0))

    for x in keys:
        hits.append(x in t1 or x in t2)
        if x in t1 or x in t2:
            (t1 if x in t1 else t2).remove(x)
            t2.append(x)
        elif x in b1 or x in b2:
            one, two = len(b1), len(b2)
            p = min(capacity, p + max(1, two // one)) if x in b1 else max(0, p - max(1, one // two))
            if len(t1) + len(t2) >= capacity:
                replace(x in b2)
            (b1 if x in b1 else b2).remove(x)
            t2.append(x)
        else:
            if len(t1) + len(b1) == capacity:
                if len(t1) < capacity:
                    b1.pop(0)
                    if len(t1) + len(t2) >= capacity:
                        replace(in_b2=False)
                else:
                    t1.pop(0)
            elif len(t1) + len(t2) + len(b1) + len(b2) >= capacity:
                if len(t1) + len(t2) + len(b1) + len(b2) == 2 * capacity:
                    b2.pop(0)
                if len(t1) + len(t2) >= capacity:
                    replace(in_b2=False)
            t1.append(x)
    return hits


@given(short, capacities)
def test_lru_lfu_and_arc_are_what_they_say(keys: list[int], capacity: int) -> None:
    trace = np.array(keys)
    assert replacement.lru_hits(trace, capacity).tolist() == plain_lru(keys, capacity)
    assert replacement.lfu_hits(trace, capacity).tolist() == plain_lfu(keys, capacity)
    hits, held = replacement.arc_hits(trace, capacity, 5)
    assert hits.tolist() == plain_arc(keys, capacity)
    assert len(held) == len(keys) // 5
    assert all(len(set(one.tolist())) == len(one) <= capacity for one in held)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=14), st.integers(1, 3))
def test_the_optimum_is_the_most_possible(keys: list[int], capacity: int) -> None:
    assert int(replacement.optimal_hits(np.array(keys), capacity).sum()) == most_possible(keys, capacity)


@given(short, capacities, st.integers(1, 9))
def test_by_night_the_last_the_most_frequent_and_the_best_stand(keys: list[int], capacity: int, night: int) -> None:
    trace = np.array(keys)
    nights = {
        name: [set(one.tolist()) for one in getattr(replacement, f"{name}_nights")(trace, capacity, night)]
        for name in ("lru", "lfu", "optimal")
    }
    for number, begin in enumerate(range(night, len(keys), night)):
        past, coming = keys[:begin], keys[begin : begin + night]
        last = {key: max(row for row, one in enumerate(past) if one == key) for key in past}
        assert nights["lru"][number] == set(sorted(last, key=lambda key: last[key])[-capacity:])
        often = sorted(last, key=lambda key: (past.count(key), last[key]))
        assert nights["lfu"][number] == set(often[-capacity:])
        most = sum(sorted(coming.count(key) for key in last)[-capacity:])
        assert sum(key in nights["optimal"][number] for key in coming) == most


def made(requests: int, seed: int = 3) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    return np.unique((rng.zipf(1.3, requests) % 300 + np.arange(requests) // 200 * 7) % 400, return_inverse=True)[1]


@pytest.mark.parametrize("capacity", [5, 40])
def test_the_optimum_bounds_all_and_nothing_looks_ahead(capacity: int) -> None:
    forgetting = _script("forgetting")
    trace = made(3000)
    for row in forgetting.measure("made", trace, capacity, 200):
        assert max(row.ratio.values()) == row.ratio["optimum"]
        assert all(row.repeats[policy] >= row.ratio[policy] for policy in row.ratio)
    ours, cut = (active_set.Ours(part, 200, 90.0) for part in (trace, trace[:1500]))
    for chosen in ("chosen_nightly", "chosen_by_request"):
        whole, begun = getattr(ours, chosen)(capacity), getattr(cut, chosen)(capacity)
        assert begun[:7].tolist() == whole[:7].tolist()


def test_nights_are_decided_as_the_product_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstate_core.forget.eviction_fit.REPLAYED_TOPICS", 100)
    ours = active_set.Ours(made(4000), 100, 90.0)
    chosen = ours.chosen_nightly(20)
    assert len(set(chosen.tolist())) > 1
    for day, curve in enumerate(chosen.tolist()):
        begin = day * 100
        fit = fit_curve(ours.trace[:begin], ours.days[:begin], 20, day, 90.0)
        assert fit.curve == ours.curves[curve]


def test_by_request_the_lowest_line_leaves() -> None:
    trace = made(600)
    ours = active_set.Ours(trace, 100, 90.0)
    long = next(number for number, curve in enumerate(ours.curves) if curve.half_life_days == 1000)
    short = next(number for number, curve in enumerate(ours.curves) if curve.half_life_days < 0.01)
    days = np.ones(6, np.int64)
    assert ours.request_hits(30, days * short).tolist() == replacement.lru_hits(trace, 30).tolist()
    assert ours.request_hits(30, days * long).mean() == pytest.approx(replacement.lfu_hits(trace, 30).mean(), abs=0.02)


def test_the_table_has_a_row_a_capacity_and_regime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgetting = _script("forgetting")
    keys = made(1200)
    path = tmp_path / "tiny.parquet"
    rows = pl.DataFrame({"request": np.arange(1200), "key": keys * 11})
    rows.sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    assert forgetting.read(path).tolist() == keys.tolist()
    forgetting.main([str(path), "--night", "100"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 6
    assert len({line.count("|") for line in lines}) == 1
    forgetting.main([str(path), "--night", "100", "--active", "9", "--json"])
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["regime"], one["capacity"]) for one in documents] == [("night", 9), ("request", 9)]


def test_made_traces_follow_from_the_seed() -> None:
    traces = _script("traces")
    for name in traces.NAMES:
        one, same, other = traces.made(name, 700, 7), traces.made(name, 700, 7), traces.made(name, 700, 8)
        assert len(one) == 700
        assert one.tolist() == same.tolist()
        assert name == "loop" or one.tolist() != other.tolist()
