"""Nights after kills: whatever dies at whatever moment, the next scheduled night publishes within two minutes.

The long form: `python -m tests.adversary.nights --kills N [--seed S] [--only ui|maintain]` prints a line for each
night: the seconds from the start to the new snapshot, how many of them it waited for a processor, and what it did when.
The two minutes hold for the time without these waits, so other work on the machine changes no verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.state.current import served_where_sound
from memstate_pipeline.instance import dagster_instance
from tests import warm
from tests.adversary.attack import a_store, opened
from tests.adversary.rows import MINE, rows_of
from tests.adversary.waits import Waits
from tests.pipeline.conftest import clean_environment, run_memstate

Started = subprocess.Popen[bytes] | warm.Process
LIMIT_SECONDS = 120.0
EVERY_MINUTE = '[schedule]\ncron = "* * * * *"\n'
_MARK = "A_NIGHT_TO_KILL"
"""The environment variable by which all processes of a tree are found, also those that left its group."""
_LONGEST_RUN = 65.0
"""From one tick of the schedule to the end of the run that it starts."""


@dataclass
class Killed:
    """A store whose processes are killed.

    Attributes:
        random: decides when.
        home: its folder.
        seconds: from each start to the next new snapshot, without waits for a processor.
        kills: how many there were.
        rows: the observations that were put into the inbox.
    """

    random: Random
    home: Path
    seconds: list[float] = field(default_factory=list)
    kills: int = 0
    rows: set[str] = field(default_factory=set)

    def put(self) -> None:
        """Puts a file into the inbox, as a copy does that ends with its name."""
        inbox = self.home / "inbox"
        inbox.mkdir(exist_ok=True)
        rows = rows_of(self.random, MINE, 20, f"killed{len(self.rows)}")
        draft = inbox / ".draft"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        draft.rename(inbox / f"{len(self.rows)}.jsonl")
        self.rows.update(str(row["observation_id"]) for row in rows)

    def start_night(self) -> warm.Process:
        """Starts a night in a forked process, so that a kill hits the night and not the loading of libraries."""
        with (self.home / "log.txt").open("ab") as log:
            command = ["-m", "memstate_pipeline", "--home", str(self.home), "maintain"]
            return warm.Process(command, clean_environment(), log, log)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts a command in a session of its own."""
        command = [sys.executable, "-m", "memstate_pipeline", "--home", str(self.home), *arguments]
        environment = clean_environment() | {_MARK: str(self.home)}
        with (self.home / "log.txt").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def kill(self, process: Started) -> None:
        """Kills the whole tree of a command; a night has no other processes."""
        if isinstance(process, warm.Process):
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            _kill_marked(self.home)
        process.wait()
        self.kills += 1

    def until_published(self, number: int, process: Started, began: float) -> None:
        """Waits for a newer snapshot than one, which has to come in time."""
        waits = Waits(time.clock_gettime(time.CLOCK_BOOTTIME) - (time.time() - began))
        while self.number() <= number:
            waits.sample(_marked(self.home), self._runner())
            taken = time.time() - began - waits.seconds()
            assert taken < LIMIT_SECONDS, (self._phases(began), (self.home / "log.txt").read_text()[-5000:])
            assert process.poll() in (None, 0), (self.home / "log.txt").read_text()[-5000:]
            time.sleep(0.2)
        wall, waited = time.time() - began, waits.seconds()
        self.seconds.append(round(wall - waited, 1))
        line = {"seconds": self.seconds[-1], "wall": round(wall, 1), "waited": round(waited, 1)}
        print(json.dumps({"kills": self.kills, **line, "runs": self._phases(began)}), flush=True)

    def _runner(self) -> int | None:
        """The process that holds the store."""
        note = self.home / "run.holder.json"
        with suppress(OSError, ValueError):
            return int(json.loads(note.read_text())["holder"].split("process ")[1].split()[0])
        return None

    def _phases(self, began: float) -> list[dict[str, Any]]:
        """The runs that were there since a moment: their jobs, and the seconds until created, started and ended."""
        with dagster_instance(opened(self.home).home) as instance:
            records = instance.get_run_records(limit=8)
        return [
            {
                "job": record.dagster_run.job_name,
                "status": record.dagster_run.status.value,
                "created": round(record.create_timestamp.timestamp() - began, 1),
                "started": round(record.start_time - began, 1) if record.start_time else None,
                "ended": round(record.end_time - began, 1) if record.end_time else None,
            }
            for record in reversed(records)
            if (record.end_time or began) >= began
        ]

    def number(self) -> int:
        """The number of the served snapshot; 0 if there is none."""
        store = opened(self.home)
        found, _ = served_where_sound(store.home, store.shards)
        return max((snapshot.manifest.number for snapshot in found), default=0)

    def verify(self) -> None:
        """The store is sound."""
        answer = run_memstate(self.home, "verify")
        assert answer.code == 0, (answer.stdout, answer.stderr)

    def account(self) -> None:
        """Every row is evidence once, or waits in the inbox or in the folder of files with which two processes died."""
        evidence = opened(self.home).ledger.scan("evidence").collect()["observation_id"].to_list()
        known = [name for name in evidence if name in self.rows]
        waiting = [*(self.home / "inbox").glob("*.jsonl"), *(self.home / "inbox" / "failed").glob("*.jsonl")]
        named = {json.loads(line)["observation_id"] for path in waiting for line in path.read_text().splitlines()}
        assert len(known) == len(set(known))
        assert set(known) | named == self.rows


def ui(killed: Killed, kills: int) -> None:
    """Kills web server, daemon and runs together, now and then a second time before anything was published."""
    process = killed.start("ui", "--port", "0")
    while killed.kills < kills:
        killed.put()
        time.sleep(killed.random.uniform(0, _LONGEST_RUN))
        killed.kill(process)
        process, began, number = killed.start("ui", "--port", "0"), time.time(), killed.number()
        if killed.kills < kills and killed.random.random() < 0.25:
            time.sleep(killed.random.uniform(0, _LONGEST_RUN))
            killed.kill(process)
            process, began, number = killed.start("ui", "--port", "0"), time.time(), killed.number()
        killed.until_published(number, process, began)
    _kill_marked(killed.home)
    process.wait()
    killed.verify()


def maintain(killed: Killed, kills: int) -> None:
    """Kills the nightly command, which the scheduler starts again."""
    for number in range(2):  # the first one also starts the server that forks the others
        killed.put()
        began = time.time()
        killed.until_published(number, process := killed.start_night(), began)
        assert process.wait() == 0
    calm = time.time() - began
    while killed.kills < kills:
        killed.put()
        process = killed.start_night()
        time.sleep(killed.random.uniform(0, calm))
        killed.kill(process)
        began, number = time.time(), killed.number()
        process = killed.start_night()
        killed.until_published(number, process, began)
        assert process.wait() == 0
        killed.verify()


WAYS: dict[str, Callable[[Killed, int], None]] = {"ui": ui, "maintain": maintain}


def attack(random: Random, folder: Path, count: int = 4, way: str | None = None) -> int:
    """Kills what runs the nights, in one of the ways, some times; every night after it publishes in time."""
    return killed_nights(random, folder, count, way or random.choice(list(WAYS))).kills


def killed_nights(random: Random, folder: Path, kills: int, way: str) -> Killed:
    """Kills what runs the nights, so many times.

    Args:
        random: decides when.
        folder: where the store is made.
        kills: how often.
        way: what is killed, a name of `WAYS`.

    Raises:
        AssertionError: no new snapshot in time, a store that does not verify, or a row that is lost or there twice.
    """
    a_store(folder / way, EVERY_MINUTE)
    killed = Killed(random, folder / way)
    try:
        WAYS[way](killed, kills)
        killed.account()
    finally:
        _kill_marked(killed.home)
        print(json.dumps({"way": way, "kills": killed.kills, "seconds": killed.seconds}), flush=True)
    return killed


def _kill_marked(home: Path) -> None:
    while left := _marked(home):
        for number in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)


def _marked(home: Path) -> list[int]:
    """The living processes that were started for a store, by what Linux knows of their environment."""
    mark = f"{_MARK}={home}\0".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The environment of a process that has ended and that nobody waited for is empty.
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def main(arguments: list[str]) -> None:
    """Runs the long form."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary.nights", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=WAYS)
    given = parser.parse_args(arguments)
    for way in [given.only] if given.only else WAYS:
        with tempfile.TemporaryDirectory() as folder:
            killed_nights(Random(given.seed), Path(folder), given.kills, way)


if __name__ == "__main__":
    main(sys.argv[1:])
