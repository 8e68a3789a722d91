"""A soak: ingest, queries, feedback and maintenance at once, and kill -9 of the server, again and again.

Afterwards the ledger must hold every acknowledged write once and every flushed access once, and the store must verify.
The program runs unchanged: `memstate serve` and `memstate maintain` as processes, clients over loopback. A write that
got no answer is sent again with the same id until it is acknowledged, as a careful client does; feedback is not, since
a second one would be a second access. An access counts as flushed when its line is in the journal on disk: the journal
is read after every kill, and what was seen there must be in the ledger in the end, once for each time it was written.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

import polars as pl
from soak_counts import Access, accesses_in, broken_segments, journal, violations

from memstate_core.model.text import iso
from memstate_core.run.store import open_store
from memstate_core.state.home import Home

SUBJECTS = [f"{colour} {thing}" for colour in ("red", "green", "blue", "grey") for thing in ("mill", "pump", "barge")]
BUSY = (429, 503)
"""Answers that ask to try again: too many requests; no snapshot is open yet after a start."""
READY_SHARE = 0.8
"""Of the kills, that wait until the server has opened its snapshot; the others hit it while it starts."""
MOST_SECONDS_TO_START = 120
MOST_SECONDS_LONGER = 300
"""Further time until each request was made at least once."""
KINDS = ("ingest", "query", "topics", "feedback")
"""Requests of clients."""
PREPARED = "2026-01-01T00:00:00Z"


class Started(Protocol):
    """A process."""

    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...


Start = Callable[[Sequence[str], IO[bytes], IO[bytes]], Started]
"""Starts Python with these arguments and these two streams to write to."""


def started(arguments: Sequence[str], stdout: IO[bytes], stderr: IO[bytes]) -> Started:
    """A Python process with the usual arguments."""
    return subprocess.Popen([sys.executable, *arguments], stdout=stdout, stderr=stderr)


@dataclass
class Seen:
    """The responses that clients received; one lock for all threads.

    Attributes:
        written: ids of acknowledged observations.
        sent: ids of all observations that were sent.
        accesses: feedback that was acknowledged.
        segments: the journal by segment, as found on disk after kills.
        answers: how many requests were answered, by what they asked for.
        wrong: answers that are never correct.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    written: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    accesses: Counter[Access] = field(default_factory=Counter)
    segments: dict[str, bytes] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


# --- clients


class Client(threading.Thread):
    """Does one thing over and over until stopped; a lost connection is made again."""

    def __init__(self, soak: Soak, number: int, step: Callable[[Client], None]) -> None:
        super().__init__(name=f"client-{number}")
        self.soak, self.number, self.chance = soak, number, random.Random(soak.seed * 1000 + number)
        self.count = 0
        self._step = step

    def run(self) -> None:
        """Steps until the soak ends."""
        while not self.soak.ended.is_set():
            self._step(self)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request: the status and the document; status 0 where the connection broke."""
        address = urlsplit(self.soak.url)
        try:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
            try:
                connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)
            return 0, None

    def settle(self, what: str, status: int, good: int, document: Any) -> bool:
        """Notes an answer; whether it is the good one."""
        if status == good:
            with self.soak.seen.lock:
                self.soak.seen.answers[what] += 1
        elif status in BUSY:
            time.sleep(0.2)
        elif status:
            with self.soak.seen.lock:
                self.soak.seen.wrong.append(f"{what} was answered {status}: {str(document)[:300]}")
        return status == good


def write(client: Client) -> None:
    """Sends one observation, again and again until it is acknowledged."""
    client.count += 1
    name = f"soak/{client.number}/{client.count}"
    subject = client.chance.choice(SUBJECTS)
    body: dict[str, Any] = {"observation_id": name, "scope": {"type": "user", "id": "soak"}}
    if client.chance.random() < 0.2:
        body |= {"kind": "user_message", "text": f"The {subject} ran {client.count} hours today."}
    else:
        body |= {"title": subject, "fields": [{"name": "hours", "value": client.count, "field_type": "int"}]}
    with client.soak.seen.lock:
        client.soak.seen.sent.add(name)
    while not client.soak.ended.is_set():
        status, document = client.ask("POST", "/v1/ingest", body)
        if client.settle("ingest", status, 202, document):
            with client.soak.seen.lock:
                client.soak.seen.written.add(name)
            return


def query(client: Client) -> None:
    """Asks about a subject; what is returned counts as used."""
    asked = {"q": f"How is the {client.chance.choice(SUBJECTS)} number {client.chance.random():.3f}?", "top_k": 3}
    client.settle("query", *_answered(client.ask("POST", "/v1/query", asked | {"scope": "user:soak"}), 200))


def give_feedback(client: Client) -> None:
    """Reports a topic as useful or not, at a time that no other request has."""
    status, page = client.ask("GET", "/v1/topics?scope=user:soak")
    if not client.settle("topics", status, 200, page) or not page["topics"]:
        return
    client.count += 1
    moment = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(microseconds=client.number * 10**9 + client.count)
    topic, failed = client.chance.choice(page["topics"])["topic_id"], client.chance.random() < 0.3
    body = {"topic_id": topic, "failed" if failed else "used": True, "at": iso(moment)}
    status, document = client.ask("POST", "/v1/feedback", body)
    if client.settle("feedback", status, 202, document):
        with client.soak.seen.lock:
            client.soak.seen.accesses[document["topic_id"], document["at"], failed] += 1


def _answered(answer: tuple[int, Any], good: int) -> tuple[int, int, Any]:
    return answer[0], good, answer[1]


STEPS = (write, write, query, query, give_feedback)


# --- the soak


class Soak:
    """The processes, the clients, and the results."""

    def __init__(self, home: Path, seed: int, start: Start = started) -> None:
        self.home, self.seed = Home(home), seed
        self._begin = start
        self.seen, self.ended = Seen(), threading.Event()
        self.kills = self.runs = 0
        self.url = ""
        self._chance = random.Random(seed)
        self._server: Started | None = None
        self._failures: list[str] = []

    def run(self, seconds: float) -> list[str]:
        """Soaks for so long, and on until all was done at least once; answers what was violated."""
        self._prepare()
        self._start()
        threads: list[threading.Thread] = [Client(self, at, step) for at, step in enumerate(STEPS)]
        threads.append(threading.Thread(target=self._maintain, name="maintenance"))
        for thread in threads:
            thread.start()
        ends = time.monotonic() + seconds
        while not self._failures and (time.monotonic() < ends or not self.kills or self._undone()):
            if self._chance.random() < READY_SHARE:
                self._until_ready()
            self._pause(self._chance.uniform(1, 10), ends)
            self._kill()
            self._start()
            if time.monotonic() > ends + MOST_SECONDS_LONGER and (undone := self._undone()):
                self._failures.append(f"not done within {seconds + MOST_SECONDS_LONGER:.0f} s: {', '.join(undone)}")
        self.ended.set()
        for thread in threads:
            thread.join()
        self._stop()
        return self._failures or self._judged()

    def _undone(self) -> list[str]:
        """What no client was answered yet, and whether no run has ended."""
        unanswered = [kind for kind in KINDS if not self.seen.answers[kind]]
        return unanswered if self.runs else [*unanswered, "a run"]

    def _pause(self, seconds: float, ends: float) -> None:
        """Leaves the server running for a time; for less once the time is over and all was done."""
        ready = time.monotonic() + seconds
        while time.monotonic() < ready and (time.monotonic() < ends or self._undone()):
            time.sleep(0.05)

    def _prepare(self) -> None:
        dump = self.home.root / "prepared.jsonl"
        rows = [
            {"title": title, "scope": {"type": "user", "id": "soak"}, "observed_at": PREPARED} for title in SUBJECTS
        ]
        dump.write_text("".join(json.dumps(row | {"summary": f"The {row['title']}"}) + "\n" for row in rows))
        self._memstate("import", str(dump))
        self._memstate("maintain")

    def _memstate(self, *arguments: str) -> None:
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            code = self._begin(self._command(*arguments), stdout, stderr).wait()
            if code:
                stderr.seek(0)
                self._failures.append(f"memstate {arguments[0]} ended with {code}: {stderr.read().decode()[-500:]}")

    def _command(self, *arguments: str) -> list[str]:
        return ["-m", "memstate_pipeline", "--home", str(self.home.root), *arguments, "--json"]

    def _maintain(self) -> None:
        while not self.ended.is_set() and not self._failures:
            self._memstate("maintain")
            self.runs += 1
            self.ended.wait(self._chance.uniform(0, 3))

    def _start(self) -> None:
        read, write = os.pipe()
        with os.fdopen(read) as output:
            with os.fdopen(write, "wb") as stdout, (self.home.root / "serve.log").open("ab") as log:
                self._server = self._begin(self._command("serve", "--port", "0"), stdout, log)
            line = output.readline()
        if not line:
            self._failures.append("the server did not start: " + (self.home.root / "serve.log").read_text()[-500:])
            return
        self.url = json.loads(line)["url"]

    def _until_ready(self) -> None:
        ends = time.monotonic() + MOST_SECONDS_TO_START
        while time.monotonic() < ends:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        self._failures.append(f"the server was not ready within {MOST_SECONDS_TO_START} s")

    def _kill(self) -> None:
        """Kills the server, then reads the journal on disk."""
        assert self._server is not None
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()
        self.kills += 1
        self.seen.segments |= journal(self.home)

    def _stop(self) -> None:
        assert self._server is not None
        self._server.send_signal(signal.SIGTERM)
        self._server.wait(60)
        self.seen.segments |= journal(self.home)

    def _judged(self) -> list[str]:
        """Two more runs, so that all is collected; then compares the ledger with responses and with the disk."""
        for command in ("maintain", "maintain", "verify"):
            self._memstate(command)
        ledger, last = open_store(self.home.root).ledger, journal(self.home)
        evidence = ledger.scan("evidence").filter(pl.col("observation_id").str.starts_with("soak/"))
        held = Counter(evidence.select("observation_id").collect()["observation_id"].to_list())
        accesses = ledger.scan("accesses").select("topic_id", "at", "failed").collect()
        recorded = Counter((topic, iso(at), failed) for topic, at, failed in accesses.iter_rows())
        seen = self.seen
        found = violations(seen.sent, seen.written, held, seen.accesses, accesses_in(last), recorded)
        wrong = [f"{len(seen.wrong)} answers were wrong, first: {seen.wrong[0]}"] if seen.wrong else []
        return [*found, *broken_segments(seen.segments, last), *wrong, *self._failures]

    def summary(self) -> str:
        """What was done, in one line."""
        answers = ", ".join(f"{count:,} {what}" for what, count in sorted(self.seen.answers.items()))
        flushed = accesses_in(journal(self.home)).total()
        return f"{self.kills} kills, {self.runs} runs; answered: {answers}; {flushed:,} accesses flushed"


def main(given: Sequence[str] | None = None) -> None:
    """Soaks and prints the result; exits with 1 if something was lost, doubled or wrongly answered."""
    parser = argparse.ArgumentParser(description="Ingest, ask, rate, maintain and kill; then count what is left.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, help="an empty folder to work in, kept; a temporary one if left out")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch:
        home = args.home or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        soak = Soak(home, args.seed)
        found = soak.run(60 * args.minutes)
        print(soak.summary())
    for each in found:
        print(f"VIOLATED: {each}")
    print("every acknowledged write and every flushed access is in the ledger once" if not found else "failed")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
