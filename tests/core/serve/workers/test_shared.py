"""What workers share: one limit for all, sums of all counts; a dead worker locks nothing and loses no count."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from memstate_core.serve.http.rate_limits import Buckets, Rate
from memstate_core.serve.options import MOST_WORKERS
from memstate_core.serve.telemetry.counters import Count, Counters
from memstate_core.serve.workers import shared
from memstate_core.serve.workers.shared import Shared
from memstate_pipeline.cli.serve import serve

RATE = Rate(a_second=1.0, burst=4.0)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def buckets(folder: Path, number: int, clock: Clock) -> Buckets:
    return Buckets(clock, table=Shared(folder, number).buckets("asked"))


def test_a_limit_holds_for_all_workers_together(tmp_path: Path) -> None:
    clock = Clock()
    one, other = (buckets(tmp_path, number, clock) for number in (0, 1))
    waits = [each.take("key", RATE) for each in (one, other, one, other, one, other)]
    assert waits[:4] == [0, 0, 0, 0]
    assert waits[4:] == pytest.approx([1.0, 1.0])
    assert other.take("another key", RATE) == 0
    clock.now += 1
    assert [each.take("key", RATE) > 0 for each in (other, one)] == [False, True]


def test_a_worker_alone_counts_the_same(tmp_path: Path) -> None:
    clock = Clock()
    alone, together = Buckets(clock), buckets(tmp_path, 0, clock)
    for step in range(40):
        clock.now += 0.3 * (step % 3)
        name = f"key {step % 2}"
        assert together.wait(name, RATE) == pytest.approx(alone.wait(name, RATE))
        assert together.take(name, RATE) == pytest.approx(alone.take(name, RATE))


def test_a_full_table_displaces_what_was_used_least_recently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_SLOTS", 8)
    clock = Clock()
    filled = buckets(tmp_path, 0, clock)
    for number in range(9):
        clock.now += 0.01
        filled.take(str(number), RATE)
    assert [filled.take("8", RATE) > 0 for _ in range(4)] == [False, False, False, True], "it is still there"
    assert [filled.take("0", RATE) for _ in range(4)] == [0, 0, 0, 0], "it was displaced, so it is full again"


def test_a_worker_that_is_killed_holds_no_lock(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from memstate_core.serve.workers.shared import Shared
from memstate_pipeline.cli.serve import serve
with Shared(Path({str(tmp_path)!r}), 0).buckets("asked"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert buckets(tmp_path, 1, Clock()).take("key", RATE) == 0


def test_counts_are_sums_and_survive_their_worker(tmp_path: Path) -> None:
    one, other = (Counters(Shared(tmp_path, number).counts(len(Count))) for number in (0, 1))
    one.add(Count.SWAPS)
    other.add(Count.SWAPS, 2)
    other.add(Count.ACCESSES_RECORDED, 5)
    for counters in (one, other):
        assert counters.read()[Count.SWAPS] == 3
        assert counters.read()[Count.ACCESSES_RECORDED] == 5
    successor = Counters(Shared(tmp_path, 1).counts(len(Count)))
    successor.add(Count.SWAPS)
    assert one.read()[Count.SWAPS] == 4
    assert (tmp_path / "1.counts").stat().st_mode & 0o077 == 0


def test_the_worker_with_the_fewest_connections_is_least_and_those_that_accept_none_do_not_count(
    tmp_path: Path,
) -> None:
    one, two, three = (Shared(tmp_path, number).connections() for number in range(3))
    one.begin()
    one.add(1)
    assert one.is_least(), "the others accept none yet"
    two.begin()
    assert (one.is_least(), two.is_least()) == (False, True)
    two.add(1)
    assert (one.is_least(), two.is_least()) == (True, True)
    two.end()
    one.add(5)
    two.add(-1)
    assert one.is_least(), "a worker that closes connections while it ends accepts none"
    three.begin()
    assert not one.is_least()


def test_a_worker_that_replaces_another_has_no_connections(tmp_path: Path) -> None:
    dead, other = (Shared(tmp_path, number).connections() for number in range(2))
    dead.begin()
    dead.add(7)
    other.begin()
    other.add(1)
    successor = Shared(tmp_path, 0).connections()
    successor.begin()
    assert (successor.is_least(), other.is_least()) == (True, False)


def test_there_is_a_number_for_each_worker_that_the_command_allows() -> None:
    assert get_type_hints(serve, include_extras=True)["workers"].__metadata__[0].max == MOST_WORKERS
