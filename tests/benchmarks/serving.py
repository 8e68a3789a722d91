"""The server under load: requests a second and latency, alone, beside maintenance, and over swaps of the snapshot.

`memstate serve` runs unchanged on a synthetic store (`made_store.py`), `wrk` asks it over loopback: a closed loop of a
few connections, each asking the next question as soon as it has its answer. A question is the title of a topic in other
words, asked in that topic's scope, as agents ask; there are so many that few come twice, so the server embeds nearly
each. Four phases: nothing beside it; `memstate maintain` again and again, each run taking a small dump from the inbox
and publishing; nothing once more, since other work on the machine may have changed; and CURRENT moved back and forth
between two snapshots, which the server opens, warms, swaps and closes. Then the memory that one more open snapshot
takes, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import generate
import polars as pl
from made_store import make

from memstate_core.model.text import iso
from memstate_core.run.store import open_store
from memstate_core.serve.snapshots.generation import Generation, SharedReader
from memstate_core.state.current import current_number, move_current, served
from memstate_core.state.home import Home
from memstate_core.state.snapshots import load_snapshot, numbers

HERE = Path(__file__).parent
SHARD = "s0"
PROGRAM = [sys.executable, "-m", "memstate_pipeline"]
ASKED = ("What do we know about {}?", "Who looks after {}?", "{}: where does it stand?", "Tell me about {}, please.")
INBOX_ROWS = 200
LONGEST_PHASE = 7200
ALONE = "alone"
MOST_SECONDS_A_SWAP = 120


@dataclass
class Phase:
    """The results of one phase of the load; latencies in milliseconds."""

    name: str
    load: dict[str, float]
    resident_mib: float
    beside: str = ""

    @property
    def failed(self) -> int:
        """Requests that were not answered with 200, or not at all."""
        return int(self.load["refused"] + self.load["broken"] + self.load["late"])


@dataclass
class Bench:
    """A store, the server on it, and the questions."""

    home: Path
    url: str
    server: int
    questions: Path
    connections: int
    seed: int
    phases: list[Phase] = field(default_factory=list)

    def measure(self, name: str, seconds: float, beside: Callable[[], str] | None = None) -> None:
        """One phase: load for so many seconds, or for the duration of the parallel task."""
        command = ["wrk", "-t", "1", "-c", str(self.connections), "--timeout", "60s", "--latency"]
        command += ["-d", f"{int(seconds if beside is None else LONGEST_PHASE)}s", "-s", str(HERE / "questions.lua")]
        given = [self.url, "--", str(self.questions), str(self.seed + len(self.phases))]
        with subprocess.Popen([*command, *given], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as wrk:
            try:
                note = beside() if beside is not None else ""
            finally:
                if beside is not None:
                    wrk.send_signal(signal.SIGINT)
            _, said = wrk.communicate()
        lines = [line for line in said.splitlines() if line]
        load = json.loads(next(line for line in lines if line.startswith("{")))
        refusals = [line for line in lines if line.startswith("first refusal")]
        self.phases.append(Phase(name, load, resident_mib(self.server), "; ".join([note, *refusals])))


# --- tasks beside the load


def maintenance(bench: Bench, seconds: float) -> str:
    """Real nights, one after the other, each with a small dump of new observations."""
    home, ends, took = Home(bench.home), time.monotonic() + seconds, []
    while not took or time.monotonic() < ends:
        number = (current_number(home, SHARD) or 0) + 1
        _drop(home.inbox, bench.seed + number)
        began = time.perf_counter()
        now = iso(generate.END + timedelta(hours=number))
        command = [*PROGRAM, "--home", str(bench.home), "maintain", "--now", now, "--json"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert json.loads(output)["snapshot"] == f"{SHARD}/{number}"
        took.append(time.perf_counter() - began)
    return f"{len(took)} runs of {sum(took) / len(took):.1f} s"


def _drop(inbox: Path, seed: int) -> None:
    inbox.mkdir(parents=True, exist_ok=True)
    draft = inbox / f"more-{seed}.part"
    generate.main([str(draft), "--observations", str(INBOX_ROWS), "--topics", "50", "--seed", str(seed)])
    draft.rename(draft.with_suffix(".jsonl"))


def swaps(bench: Bench, count: int) -> str:
    """Moves CURRENT back and forth, each time as soon as the server names the snapshot."""
    home = Home(bench.home)
    kept = numbers(home, SHARD)[-2:]
    took = []
    for at in range(count):
        wanted = kept[at % 2]
        began = time.perf_counter()
        move_current(home, SHARD, wanted)
        while ready(bench.url) != f"{SHARD}/{wanted}":
            if time.perf_counter() - began > MOST_SECONDS_A_SWAP:
                raise SystemExit(f"{SHARD}/{wanted} was not served within {MOST_SECONDS_A_SWAP} s")
            time.sleep(0.05)
        took.append(time.perf_counter() - began)
    move_current(home, SHARD, kept[-1])
    return f"{count} swaps, {sum(took) / count:.2f} s each"


# --- the server


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, int]]:
    """`memstate serve` on a free port: its URL and process."""
    command = [*PROGRAM, "--home", str(home), "serve", "--port", "0", "--rate-limit", "0", "--json"]
    with (home / "serve.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"], process.pid
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def ready(url: str) -> str | None:
    """The snapshot that is served; None before the first."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=60) as answer:
            return str(json.load(answer)["snapshot"])
    except OSError:
        return None


def resident_mib(process: int, kind: str = "Rss") -> float:
    """Memory of a process; its anonymous part for the kind `Anonymous`."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


# --- questions and memory


def served_scopes(home: Path) -> list[str]:
    """The scopes with served topics, sorted."""
    folder = Home(home).snapshots(SHARD) / str(current_number(Home(home), SHARD))
    return pl.read_parquet(folder / "topics.parquet", columns=["scope"])["scope"].unique().sort().to_list()


def write_questions(home: Path, file: Path, count: int, seed: int) -> int:
    """Bodies of queries, one a line, about topics of all shards drawn at random; answers the number of scopes."""
    store = open_store(home)
    files = [snapshot.path / "topics.parquet" for snapshot in served(store.home, store.shards)]
    topics = pl.concat([pl.read_parquet(each, columns=["scope", "title"]) for each in files])
    rng = random.Random(seed)
    with file.open("w") as out:
        for _ in range(count):
            scope, title = topics.row(rng.randrange(topics.height))
            out.write(json.dumps({"q": rng.choice(ASKED).format(title), "scope": scope}) + "\n")
    return topics["scope"].n_unique()


def memory_of_snapshots(home: Path) -> list[tuple[str, float, float]]:
    """What each of the last two snapshots adds when it is opened and warmed: anonymous and mapped MiB."""
    from memstate_core.serve.snapshots.question_encoder import QuestionEncoder

    found, held = [], []
    encoder = QuestionEncoder(load_snapshot(Home(home), SHARD, numbers(Home(home), SHARD)[-1]).manifest.embedding_model)
    encoder.encode(["warm-up"])
    for number in numbers(Home(home), SHARD)[-2:]:
        before = _memory()
        reader = SharedReader(load_snapshot(Home(home), SHARD, number))
        held.append(reader)
        Generation((reader,), encoder).warm([])
        after = _memory()
        found.append((f"{SHARD}/{number}", after[0] - before[0], after[1] - before[1]))
    return found


def _memory() -> tuple[float, float]:
    anonymous = resident_mib(os.getpid(), "Anonymous")
    return anonymous, resident_mib(os.getpid()) - anonymous


# --- command line


def ratio(phase: Phase, phases: Sequence[Phase]) -> float:
    """The p99 of a phase in relation to the mean of those that had nothing beside them."""
    alone = [each.load["p99"] for each in phases if each.name.startswith(ALONE)]
    return phase.load["p99"] * len(alone) / sum(alone)


def within(factor: float, phases: Sequence[Phase]) -> bool:
    """Whether no request failed, and p99 of the second phase is at most so many times that of those alone."""
    return not any(phase.failed for phase in phases) and ratio(phases[1], phases) <= factor


def table(phases: Sequence[Phase]) -> str:
    """A line a phase; the last column relates its p99 to those of the phases alone."""
    heads = "| phase | requests/s | p50 ms | p90 ms | p99 ms | max ms | requests | failed | resident MiB | p99 ratio |"
    lines = [heads, "|" + "---|" * 10]
    for phase in phases:
        load = phase.load
        times = " | ".join(f"{load[name]:.1f}" for name in ("p50", "p90", "p99", "max"))
        name = f"{phase.name} ({phase.beside})" if phase.beside else phase.name
        counts = f"{int(load['requests']):,} | {phase.failed} | {phase.resident_mib:,.0f}"
        rate = load["requests"] / load["seconds"]
        lines.append(f"| {name} | {rate:.1f} | {times} | {counts} | {ratio(phase, phases):.2f} |")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> bool:
    """All phases; whether no request failed and the latency beside maintenance is within the factor."""
    make(args.home, args.topics, max(1, args.topics // 2), args.scopes, args.seed)
    questions = args.home / "questions.jsonl"
    scopes = write_questions(args.home, questions, args.questions, args.seed)
    with serving(args.home) as (url, process):
        while ready(url) is None:
            time.sleep(0.2)
        bench = Bench(args.home, url, process, questions, args.connections, args.seed)
        bench.measure("warm-up", 10)
        bench.phases.clear()
        bench.measure(ALONE, args.seconds)
        bench.measure("beside maintenance", args.seconds, lambda: maintenance(bench, args.seconds))
        bench.measure(f"{ALONE}, again", args.seconds)
        bench.measure("over swaps", args.seconds, lambda: swaps(bench, args.swaps))
    counts = load_snapshot(Home(args.home), SHARD, numbers(Home(args.home), SHARD)[-1]).manifest.counts
    print(f"### {counts['active']:,} topics in {scopes} scopes, {args.connections} connections\n")
    print(table(bench.phases))
    for name, anonymous, mapped in memory_of_snapshots(args.home):
        print(f"\nOpening and warming {name}: {anonymous:.0f} MiB of memory, {mapped:.0f} MiB of mapped files.")
    return within(args.factor, bench.phases)


def main(given: Sequence[str] | None = None) -> None:
    """Prints one table; exits with 1 if a request failed or maintenance slowed others beyond the factor."""
    parser = argparse.ArgumentParser(description="Put load on a server: alone, beside maintenance, over swaps.")
    parser.add_argument("home", type=Path, help="kept; made if it has no snapshot yet")
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--scopes", type=int, default=10)
    parser.add_argument("--swaps", type=int, default=50)
    args = parsed(parser, given, connections=4, factor=3.0)
    sys.exit(0 if run(args) else 1)


def parsed(
    parser: argparse.ArgumentParser, given: Sequence[str] | None, *, connections: int, factor: float
) -> argparse.Namespace:
    """The options of a parser and those of all such loads, with these defaults; an error where wrk is not installed."""
    parser.add_argument("--connections", type=int, default=connections)
    parser.add_argument("--seconds", type=float, default=60, help="of the phases with nothing beside them")
    parser.add_argument("--questions", type=int, default=50_000)
    parser.add_argument("--factor", type=float, default=factor, help="how much longer p99 may be beside maintenance")
    parser.add_argument("--seed", type=int, default=7)
    if shutil.which("wrk") is None:
        parser.error("wrk is not installed (Debian: apt-get install wrk)")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
