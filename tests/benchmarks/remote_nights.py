"""What a night of a store at a URL costs beside the same night of a home of its own.

Two homes import the same generated observations in batches, one batch a night, in this process and in turn: one is the
store, the other a checkout of a store at a URL. Their state hashes have to be equal. The first night of both is left
out: it loads the model and sends most of the store. CPU is that of this process alone, so not that of a server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import generate
import pytest

from memstate_core.run.store import open_store
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from memstate_pipeline.run import maintain

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.core.storage.s3 import empty_bucket, fault_proxy, s3_server, use_endpoint

BEGIN = datetime(2026, 4, 6, 2, tzinfo=UTC)
Measured = tuple[float, float]
"""Seconds of wall clock and of CPU."""


def batches(folder: Path, observations: int, nights: int) -> list[bytes]:
    """The rows of each night: all of one dump, in turn."""
    dump = folder / "dump.jsonl"
    generate.main(["--observations", str(observations), "--topics", str(observations // 5), "--seed", "7", str(dump)])
    rows = dump.read_bytes().splitlines(keepends=True)
    first = len(rows) // 2
    size = (len(rows) - first) // max(nights - 1, 1)
    return [b"".join(rows[:first]), *(b"".join(rows[first + size * n :][:size]) for n in range(nights - 1))]


def night(home: Path, variables: Mapping[str, str], number: int, rows: bytes) -> tuple[Measured, str]:
    """Runs a night with new rows; what it cost, and the state hash."""
    (home / "inbox").mkdir(parents=True, exist_ok=True)
    dump = home / "inbox" / f"{number}.jsonl"
    dump.write_bytes(rows)
    os.utime(dump, (0, 0))  # settled
    with patch.dict(os.environ, variables):
        wall, cpu = time.perf_counter(), time.process_time()
        done = maintain(open_store(home), BEGIN + timedelta(days=number))
        return (time.perf_counter() - wall, time.process_time() - cpu), str(done.summary["state_hash"])


def measured(url: str, folder: Path, rows: Sequence[bytes]) -> dict[str, list[Measured]]:
    """The costs of all nights but the first, by kind of home."""
    homes = {"a home of its own": {}, "a store at the URL": {"MEMSTATE_STORE_URL": url}}
    found: dict[str, list[Measured]] = {kind: [] for kind in homes}
    for number, batch in enumerate(rows):
        hashes = set()
        for place, (kind, variables) in enumerate(homes.items()):
            cost, state = night(folder / str(place), variables, number, batch)
            found[kind] += [cost] * (number > 0)
            hashes.add(state)
        assert len(hashes) == 1, hashes
    return found


def report(found: Mapping[str, Sequence[Measured]], size: int) -> str:
    """The table: medians, and their ratio."""
    medians = {kind: [statistics.median(each) for each in zip(*costs, strict=True)] for kind, costs in found.items()}
    lines = ["| a night | wall, s | CPU, s |", "|---|---|---|"]
    lines += [f"| {kind} | {wall:.2f} | {cpu:.2f} |" for kind, (wall, cpu) in medians.items()]
    (wall, cpu), (far, far_cpu) = medians.values()
    lines.append(f"| ratio | {far / wall:.2f} | {far_cpu / cpu:.2f} |")
    return "\n".join([*lines, "", f"The store at the URL has {size / (1 << 20):.1f} MiB at the end."])


@contextmanager
def delayed_bucket(folder: Path, seconds: float) -> Iterator[str]:
    """The URL of an empty bucket of moto's server, behind a proxy that waits before each answer."""
    with s3_server(folder) as endpoint, pytest.MonkeyPatch.context() as patch, fault_proxy(endpoint) as (slow, faults):
        empty_bucket(endpoint, patch)
        use_endpoint(slow, patch)
        faults.seconds = seconds
        yield "s3://bucket/store"


def main(given: Sequence[str] | None = None) -> None:
    """Runs the nights and prints the table."""
    parser = argparse.ArgumentParser(description="Measure nights of a store at a URL.")
    parser.add_argument("--url", help="an empty place; default: a folder")
    parser.add_argument("--delay", type=float, help="a server of S3's protocol that answers after so many seconds")
    parser.add_argument("--observations", type=int, default=20_000)
    parser.add_argument("--nights", type=int, default=6)
    args = parser.parse_args(given)
    with TemporaryDirectory() as scratch, ExitStack() as servers:
        folder = Path(scratch)
        url = args.url or f"file://{folder}/url"
        if args.delay is not None:
            url = servers.enter_context(delayed_bucket(folder, args.delay))
        found = measured(url, folder, batches(folder, args.observations, args.nights))
        print(report(found, sum(storage(url, STORE).sizes("data").values())))


if __name__ == "__main__":
    main()
