"""Throughput of the API by the number of replicas: 1, 2 and 4 servers over one publication, in one run.

A synthetic store is published to a folder, and every replica is a `memstate serve --replica-of` of its own, with a home
of its own, as on a machine of its own; all run from the beginning. In each round so many of them are asked, by one
`wrk` each, with the same number of connections in all and other questions than before, since replicas remember vectors.
Rounds take turns, so that whatever else the machine does meets all numbers of replicas; rates are compared by the
median of their ratios to one replica in the same round. Replicas and `wrk` share the cores of this machine, so no ratio
can exceed their number.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import questions
import serving

from memstate_core.night.publication.upload import publish_to
from memstate_core.run.store import open_store

COUNTS = (1, 2, 4)


@dataclass(frozen=True)
class Result:
    """What some replicas did together: medians over the rounds.

    Attributes:
        replicas: how many were asked.
        a_second: requests a second of all together.
        ratio: that divided by the rate of one replica.
        p50: milliseconds, of the slowest replica of a round.
        p99: the same.
        cpu_ms: CPU milliseconds a request, of the replicas alone.
    """

    replicas: int
    a_second: float
    ratio: float
    p50: float
    p99: float
    cpu_ms: float


def asked(
    servers: Sequence[questions.Server], bodies: Path, connections: int, seconds: int, seed: int
) -> questions.Round:
    """Asks some replicas at once; the connections are divided among them."""
    share = max(1, connections // len(servers))

    def ask(place: int) -> questions.Round:
        return questions.measure(servers[place], bodies, share, seconds, seed + place)

    with ThreadPoolExecutor(len(servers)) as threads:
        found = list(threads.map(ask, range(len(servers))))
    rate = sum(each.a_second for each in found)
    cpu = sum(each.cpu_ms * each.a_second for each in found) / rate
    return questions.Round(rate, max(each.p50 for each in found), max(each.p99 for each in found), cpu)


def measured(
    home: Path, folder: Path, counts: Sequence[int], *, connections: int, seconds: int, rounds: int
) -> list[Result]:
    """The results of each number of replicas.

    Args:
        home: the store, with snapshots.
        folder: for the publication and the homes of replicas.
        counts: the numbers of replicas; the first is what the others are compared with.
        connections: of all replicas together.
        seconds: of a round.
        rounds: of each number.
    """
    bodies, where = folder / "questions.jsonl", f"file://{folder}/published"
    serving.write_questions(home, bodies, 50_000, 7)
    publish_to(open_store(home), where)
    with ExitStack() as stack:
        servers = [stack.enter_context(_replica(folder / f"replica-{number}", where)) for number in range(max(counts))]
        asked(servers, bodies, max(counts), max(5, seconds), 1)  # every replica reads every scope
        found = {
            (count, number): asked(servers[:count], bodies, connections, seconds, 1000 * number + 100 * count)
            for number in range(rounds)
            for count in counts
        }
    return [_result(count, counts[0], rounds, found) for count in counts]


def _replica(home: Path, where: str) -> AbstractContextManager[questions.Server]:
    home.mkdir()
    return questions.running(questions.ROOT, home, "--replica-of", where, "--no-record")


def _result(count: int, base: int, rounds: int, found: dict[tuple[int, int], questions.Round]) -> Result:
    own = [found[count, number] for number in range(rounds)]
    ratios = [found[count, number].a_second / found[base, number].a_second for number in range(rounds)]
    rate, p50, p99, cpu = (median(getattr(each, name) for each in own) for name in ("a_second", "p50", "p99", "cpu_ms"))
    return Result(count, rate, median(ratios), p50, p99, cpu)


def table(results: Iterable[Result]) -> str:
    """The results as a table of Markdown."""
    head = ["| replicas | requests/s | ratio | p50 ms | p99 ms | CPU ms a request |", "|---|---|---|---|---|---|"]
    rows = (
        f"| {each.replicas} | {each.a_second:,.1f} | {each.ratio:.2f} | {each.p50:.1f} | {each.p99:.1f} "
        f"| {each.cpu_ms:.2f} |"
        for each in results
    )
    return "\n".join([*head, *rows])


def main(given: Sequence[str] | None = None) -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description="Throughput of the API by the number of replicas.")
    parser.add_argument("home", type=Path, help="a store, which is kept; made if it has no snapshot yet")
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--scopes", type=int, default=10)
    parser.add_argument("--replicas", type=int, nargs="+", default=list(COUNTS), help="the first is compared with")
    parser.add_argument("--connections", type=int, default=8, help="of all replicas together")
    parser.add_argument("--seconds", type=int, default=20, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(given)
    if shutil.which("wrk") is None:
        parser.error("wrk is not installed (Debian: apt-get install wrk)")
    serving.make(args.home, args.topics, max(1, args.topics // 2), args.scopes, 7)
    how = {"connections": args.connections, "seconds": args.seconds, "rounds": args.rounds}
    with TemporaryDirectory() as folder:
        results = measured(args.home, Path(folder), args.replicas, **how)
    print(f"### {args.connections} connections, {os.cpu_count()} cores\n\n{table(results)}")


if __name__ == "__main__":
    main()
