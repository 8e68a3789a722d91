"""What a night costs in which nothing has changed: with the state of the last one taken over, and folded whole.

The store is that of `made_store.py`. Both nights run in this process and in turn, each a day after the last; the steps'
seconds are those of the report.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import made_store
from changed_nights import everything_anew

from memstate_core.embed.encoder import Encoder
from memstate_core.run.store import open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.run import maintain

SHOWN = ("evidence", "placements", "topics", "salience", "forgetting", "snapshot")
"""The steps that take time in such a night."""


def night(home: Path, *, whole: bool) -> dict[str, float]:
    """Runs the next night; seconds by step, `all steps`, and `wall` and `cpu` of the whole run."""
    store = open_store(home)
    served = current_snapshot(store.home, "s0")
    assert served is not None
    wall, cpu = time.perf_counter(), time.process_time()
    with everything_anew() if whole else nullcontext():
        done = maintain(store, served.manifest.now + timedelta(days=1))
    seconds = dict(done.summary["seconds"])
    totals = {"all steps": sum(seconds.values()), "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {**seconds, **totals}


def report(measured: Sequence[tuple[bool, dict[str, float]]]) -> str:
    """The table: the least of each column over the nights of a kind, and the ratio."""
    names = (*SHOWN, "all steps", "wall", "cpu")
    kinds = {kind: [found for whole, found in measured if whole is kind] for kind in (True, False)}
    least = {kind: [min(found.get(name, 0.0) for found in nights) for name in names] for kind, nights in kinds.items()}
    lines = [f"| seconds | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for label, kind in (("folded whole", True), ("taken over", False)):
        lines.append(f"| {label} | {' | '.join(f'{value:.1f}' for value in least[kind])} |")
    ratios = [whole / max(taken, 0.05) for whole, taken in zip(least[True], least[False], strict=True)]
    return "\n".join([*lines, f"| ratio | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} |"])


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store unless it is there, runs the nights and prints the table."""
    parser = argparse.ArgumentParser(description="Measure nights in which nothing has changed.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--scopes", type=int, default=20)
    parser.add_argument("--nights", type=int, default=2, help="of each kind")
    args = parser.parse_args(given)
    made_store.make(args.home, args.topics, max(1, args.topics // 10), args.scopes, 7)
    with patch.object(Encoder, "encode", made_store.MadeEncoder.encode):
        night(args.home, whole=True)  # the base of the first night may be of an older version
        measured = [(whole, night(args.home, whole=whole)) for _ in range(args.nights) for whole in (True, False)]
    print(report(measured))


if __name__ == "__main__":
    main()
