"""Forgetting as cache replacement: which topics stay active under a bound, on traces of requests for keys.

Each file has the columns `request` (order) and `key`. A request is an access, and a hit if its key is active.
All start with nothing active. By night all policies decide after so many requests, and the active set does not
change until the next night; by request they decide at each request. Ours chooses its curve from earlier requests only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from active_set import Ours
from replacement import (
    Bools,
    Ints,
    arc_hits,
    lfu_hits,
    lfu_nights,
    lru_hits,
    lru_nights,
    nightly_hits,
    optimal_hits,
    optimal_nights,
)

from memstate_core.policy.settings import Policy

SHARES = (0.01, 0.05, 0.2)
"""Shares of the keys that may be active."""
COLUMNS = ("trace", "keys", "requests", "active", "decides", "ours", "not fitted", "LRU", "LFU", "ARC", "optimum")
COMPARED = ("points to the better of LRU, LFU", "at least equal", "points to ARC", "repeats free", "CPU seconds")
Hits = dict[str, Bools]


@dataclass(frozen=True)
class Row:
    """One capacity in one regime.

    Attributes:
        trace, keys, requests, capacity, regime: what was measured.
        ratio: hits a request, by policy.
        repeats: the same if a request also counts as a hit once the night has asked for the key.
        seconds: CPU time that it took.
    """

    trace: str
    keys: int
    requests: int
    capacity: int
    regime: str
    ratio: dict[str, float]
    repeats: dict[str, float]
    seconds: float


def read(path: Path) -> Ints:
    """The keys of a trace in order, numbered 0 .. count - 1 (n,)."""
    keys = pl.read_parquet(path, columns=["request", "key"]).sort("request", maintain_order=True)["key"]
    return np.unique(keys.to_numpy(), return_inverse=True)[1].astype(np.int64)


def measure(name: str, trace: Ints, capacity: int, night: int) -> list[Row]:
    """Both regimes of one capacity."""
    ours = Ours(trace, night, Policy().salience_half_life_days)
    began = time.process_time()
    arc, held = arc_hits(trace, capacity, night)
    shared = time.process_time() - began
    rows = []
    for regime, hits in (("night", _by_night), ("request", _by_request)):
        began = time.process_time()
        found = hits(ours, capacity)
        found["ARC"] = nightly_hits(trace, night, held) if regime == "night" else arc
        seconds = time.process_time() - began + shared
        repeat = _repeats(trace, night)
        ratio = {policy: float(hit.mean()) for policy, hit in found.items()}
        repeats = {policy: float((hit | repeat).mean()) for policy, hit in found.items()}
        count = int(trace.max()) + 1
        rows.append(Row(name, count, len(trace), capacity, regime, ratio, repeats, seconds))
    return rows


def _by_night(ours: Ours, capacity: int) -> Hits:
    trace, night = ours.trace, ours.night
    chosen = ours.chosen_nightly(capacity)
    active = {
        "ours": ours.nights(capacity, chosen),
        "not fitted": ours.nights(capacity, np.zeros_like(chosen)),
        "LRU": lru_nights(trace, capacity, night),
        "LFU": lfu_nights(trace, capacity, night),
        "optimum": optimal_nights(trace, capacity, night),
    }
    return {policy: nightly_hits(trace, night, keys) for policy, keys in active.items()}


def _by_request(ours: Ours, capacity: int) -> Hits:
    chosen = ours.chosen_by_request(capacity)
    return {
        "ours": ours.request_hits(capacity, chosen),
        "not fitted": ours.request_hits(capacity, np.zeros_like(chosen)),
        "LRU": lru_hits(ours.trace, capacity),
        "LFU": lfu_hits(ours.trace, capacity),
        "optimum": optimal_hits(ours.trace, capacity),
    }


def _repeats(trace: Ints, night: int) -> Bools:
    """Requests for keys that were requested before in the same night (n,)."""
    cells = np.arange(len(trace)) // night * (int(trace.max()) + 1) + trace
    repeat = np.ones(len(trace), bool)
    repeat[np.unique(cells, return_index=True)[1]] = False
    return repeat


def line(row: Row) -> str:
    """One row of the table."""
    ratio = row.ratio
    ahead = ratio["ours"] - max(ratio["LRU"], ratio["LFU"])
    free = row.repeats["ours"] - max(row.repeats["LRU"], row.repeats["LFU"])
    cells = [row.trace, f"{row.keys:,}", f"{row.requests:,}", f"{row.capacity:,}", row.regime]
    cells += [f"{ratio[policy]:.4f}" for policy in COLUMNS[5:]]
    cells += [f"{100 * ahead:+.2f}", "yes" if ahead >= 0 else "no", f"{100 * (ratio['ours'] - ratio['ARC']):+.2f}"]
    cells += [f"{100 * free:+.2f}" if row.regime == "night" else "", f"{row.seconds:.0f}"]
    return f"| {' | '.join(cells)} |"


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare orders of forgetting on traces of requests.")
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="parquet with columns request, key")
    parser.add_argument("--night", type=int, default=10_000, help="requests in a night")
    parser.add_argument("--active", type=int, nargs="+", help="how many keys may be active; 1, 5 and 20 % by default")
    parser.add_argument("--json", action="store_true", help="one JSON document a row")
    found = parser.parse_args(given)
    if found.night < 1 or min(found.active or [1]) < 1:
        parser.error("expected nights of at least 1 request and at least 1 active key")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Measures each trace with each capacity and prints the table row by row."""
    args = _arguments(given)
    if not args.json:
        head = COLUMNS + COMPARED
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for path in args.traces:
        trace = read(path)
        capacities = args.active or [max(1, int((int(trace.max()) + 1) * share)) for share in SHARES]
        for capacity in capacities:
            for row in measure(path.stem, trace, capacity, args.night):
                print(json.dumps(asdict(row)) if args.json else line(row), flush=True)


if __name__ == "__main__":
    main()
