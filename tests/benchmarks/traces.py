"""Synthetic traces for the benchmark of forgetting: parquet files of numbered requests for keys.

| trace | requests |
|---|---|
| zipf | by Zipf's law with exponent 0.9, constant popularity |
| drift | the same law over a popularity that moves on by 3 keys each 50 requests |
| phases | the same law, each fifth of the trace with popularity assigned again |
| scan | the same law; of each 1,000 requests, with a chance of 0.4, all are for keys never seen again |
| loop | 6,000 keys in a circle |
| recency | a key whose rank in the order of last use follows Pareto's law with exponent 0.6 |
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NAMES = ("zipf", "drift", "phases", "scan", "loop", "recency")


def made(name: str, requests: int, seed: int) -> Ints:
    """The keys of a synthetic trace (requests,)."""
    rng, row = np.random.default_rng([seed, NAMES.index(name)]), np.arange(requests)
    if name == "loop":
        return row % 6000
    if name == "recency":
        return _recent(requests, rng)
    popular = _zipf(20_000, requests, rng)
    if name == "drift":
        return (popular + row // 50 * 3) % 40_000
    if name == "phases":
        orders = np.array([rng.permutation(20_000) for _ in range(5)])
        return np.asarray(orders[row * 5 // max(1, requests), popular])
    scanned = np.repeat(rng.random(requests // 1000 + 1) < 0.4, 1000)[:requests]
    return np.where(scanned, 20_000 + row, popular) if name == "scan" else popular


def _zipf(keys: int, requests: int, rng: np.random.Generator) -> Ints:
    odds = 1 / np.arange(1, keys + 1) ** 0.9
    return rng.choice(keys, requests, p=odds / odds.sum())


def _recent(requests: int, rng: np.random.Generator) -> Ints:
    stack, keys = list(range(10_000)), np.empty(requests, np.int64)
    back = np.minimum((rng.pareto(0.6, requests) * 20).astype(np.int64), len(stack) - 1)
    for row, depth in enumerate(back.tolist()):
        keys[row] = stack.pop(depth)
        stack.insert(0, int(keys[row]))
    return keys


def main(given: Sequence[str] | None = None) -> None:
    """Writes one file a trace into a directory."""
    parser = argparse.ArgumentParser(description="Write made traces as parquet files.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--requests", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args(given)
    args.directory.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        keys = made(name, args.requests, args.seed)
        pl.DataFrame({"request": np.arange(len(keys)), "key": keys}).write_parquet(args.directory / f"{name}.parquet")


if __name__ == "__main__":
    main()
