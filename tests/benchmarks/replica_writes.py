"""What a write through a replica costs: an object at a URL beside a file in the inbox, and the fetch of the store.

The same requests of one observation, from a few threads at once: written into a local inbox as the store's own server
does, in groups that share a sync; stored one by one at a URL as replicas do; then fetched into a home, imported, and
removed at the URL. Without HTTP, which costs both the same. The CPU is that of this process alone, so not that of a
server of object storage.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from memstate_core.ingest.inbox import import_inbox
from memstate_core.night.publication.fetch import fetch_inbox, release_imported
from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.serve.replica.writes import RemoteInbox
from memstate_core.state.home import Home

TEXT = "We moved the call to the week after, since the gate of the yard is shut until Thursday. "


@dataclass(frozen=True)
class Cost:
    """What a step cost, for each request: milliseconds of wall clock and of CPU, and requests a second."""

    step: str
    wall_ms: float
    cpu_ms: float
    rate: float


def requests(count: int, now: datetime) -> list[bytes]:
    """Requests of one observation of about 1 KiB each."""
    said = {"scope": {"type": "user", "id": "bench"}, "observed_at": now.isoformat()}
    return [json.dumps(said | {"text": f"{number}: {TEXT * 10}"}).encode() + b"\n" for number in range(count)]


def measured(url: str, count: int, threads: int, folder: Path) -> list[Cost]:
    """The costs of both ways, in this order.

    Args:
        url: an empty place for objects.
        count: how many requests.
        threads: how many at once.
        folder: for two homes.
    """
    now = datetime.now(UTC)
    rows = requests(count, now)
    local, store = Home(folder / "local"), Store(Home(folder / "store"), Settings())
    files, objects = InboxWriter(local.inbox, local.inbox_key), RemoteInbox(url, count)

    def each(write: Callable[[bytes], str]) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(write, rows))

    def imported() -> None:
        report = import_inbox(store.home, store.ledger, store.settings, now=now, run_id="bench")
        assert report.accepted == count, report

    return [
        _cost("a file in the inbox", count, lambda: each(files.append)),
        _cost("an object at the URL", count, lambda: each(objects.append)),
        _cost("the fetch", count, lambda: fetch_inbox(store, url, now)),
        _cost("the import", count, imported),
        _cost("the removal", count, lambda: release_imported(store, url)),
    ]


def _cost(step: str, count: int, run: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Cost(step, 1000 * wall / count, 1000 * cpu / count, count / wall)


def table(costs: Iterable[Cost]) -> str:
    """The costs as a table of Markdown."""
    head = ["| step | ms a request | CPU ms a request | requests a second |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {c.step} | {c.wall_ms:.2f} | {c.cpu_ms:.2f} | {c.rate:,.0f} |" for c in costs)])


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="an empty place, such as s3://bucket/bench; by default a folder")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=16)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        url = given.url or f"file://{folder}/objects"
        print(table(measured(url, given.requests, given.threads, Path(folder))))


if __name__ == "__main__":
    main()
