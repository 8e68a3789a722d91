"""Questions over HTTP: this code and another commit of it, in turns on one machine and one store.

Both servers run from the beginning; one is asked at a time, in short rounds, so that whatever else the machine does
falls on both. Ratios of rates are medians over the rounds. CPU seconds a request are those of the server's processes
and differ less than rates on a busy machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import serving
from measures import Measure

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 4


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    url: str
    process: int

    def cpu_seconds(self) -> float:
        """CPU seconds of the process and of its workers."""
        return sum(map(_cpu_seconds, [self.process, *_children(self.process)]))


@dataclass(frozen=True)
class Round:
    """What one server did in one round."""

    a_second: float
    p50: float
    p99: float
    cpu_ms: float


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """A working tree of a commit."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


@contextmanager
def running(tree: Path, home: Path, *options: str) -> Iterator[Server]:
    """`memstate serve` of a working tree, once it is ready."""
    command = [*serving.PROGRAM, "--home", str(home), "serve", "--port", "0", "--rate-limit", "0", "--json", *options]
    with (home / "serve.log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        while serving.ready(url) is None:
            time.sleep(0.2)
        yield Server(url, process.pid)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def measure(server: Server, questions: Path, connections: int, seconds: int, seed: int) -> Round:
    """Asks one server for some seconds.

    Raises:
        SystemExit: a request failed.
    """
    command = ["wrk", "-t", "1", "-c", str(connections), "--timeout", "60s", "--latency", "-d", f"{seconds}s"]
    before = server.cpu_seconds()
    said = subprocess.run(
        [*command, "-s", str(HERE / "questions.lua"), server.url, "--", str(questions), str(seed)],
        check=True, capture_output=True, text=True,
    ).stderr  # fmt: skip
    load = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    if load["refused"] + load["broken"] + load["late"]:
        raise SystemExit(f"requests failed: {said}")
    spent = 1000 * (server.cpu_seconds() - before) / load["requests"]
    return Round(load["requests"] / load["seconds"], load["p50"], load["p99"], spent)


def compared(
    home: Path,
    base: str,
    workers: int,
    *,
    topics: int,
    scopes: int,
    seconds: int,
    rounds: int,
    faster: float | None = 5.0,
    most: tuple[float, float] = (8.0, 25.0),
) -> list[Measure]:
    """The figures of this code against those of a commit.

    Args:
        home: the store; made if it has no snapshot.
        base: the commit.
        workers: worker processes of this code; the commit runs as it does by itself.
        topics: of a store that is made.
        scopes: of a store that is made.
        seconds: of a round.
        rounds: rounds of each server at each number of connections.
        faster: target of the ratio of rates.
        most: targets of one connection: p50 and p99, in milliseconds.
    """
    serving.make(home, topics, max(1, topics // 2), scopes, 7)
    questions = home / "questions.jsonl"
    serving.write_questions(home, questions, 50_000, 7)
    with ExitStack() as stack:
        tree = stack.enter_context(checkout(base, home / "base"))
        before = stack.enter_context(running(tree, home))
        options = ["--workers", str(workers)] if workers > 1 else []
        now = stack.enter_context(running(ROOT, home, *options))
        for server in (before, now):
            measure(server, questions, CONNECTIONS, max(2, seconds // 2), 1)  # reads every scope
        pairs = {
            connections: [
                tuple(measure(server, questions, connections, seconds, 10 + number) for server in (before, now))
                for number in range(rounds)
            ]
            for connections in (CONNECTIONS, 1)
        }
    return [*_ratios(pairs[CONNECTIONS], workers, faster), *_alone(pairs[1], *most)]


def _ratios(pairs: Sequence[tuple[Round, ...]], workers: int, faster: float | None) -> list[Measure]:
    here = f"{CONNECTIONS} connections, {workers} workers"
    return [
        Measure(f"{here}: rate", median(now.a_second / then.a_second for then, now in pairs), "times", least=faster),
        Measure(f"{here}: CPU a request", median(then.cpu_ms / now.cpu_ms for then, now in pairs), "times less"),
        Measure(f"{here}: requests", median(now.a_second for _, now in pairs), "a second"),
        Measure(f"{CONNECTIONS} connections, base: requests", median(then.a_second for then, _ in pairs), "a second"),
    ]


def _alone(pairs: Sequence[tuple[Round, ...]], p50: float, p99: float) -> list[Measure]:
    return [
        Measure("one connection: p50", median(now.p50 for _, now in pairs), "ms", most=p50),
        Measure("one connection: p99", median(now.p99 for _, now in pairs), "ms", most=p99),
        Measure("one connection, base: p50", median(then.p50 for then, _ in pairs), "ms"),
        Measure("one connection: CPU a request", median(now.cpu_ms for _, now in pairs), "ms"),
        Measure("one connection, base: CPU a request", median(then.cpu_ms for then, _ in pairs), "ms"),
    ]


def _children(process: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:  # the kernel does not list them
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            found += [int(stat.parent.name)] if parent == process else []
        return found


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit("run it by run.py")
