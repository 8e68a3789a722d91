"""Other processes take part in the work, change nothing about it, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from memstate_core.state.process.parallel import cores, in_threads, mapped
from tests.core.state.side_work import fatal, noisy, refused, unsendable, whose
from tests.processes import FRESH, children, is_alive, program, until

pytestmark = pytest.mark.slow


def test_other_processes_take_items_and_results_keep_their_order() -> None:
    found = list(mapped(partial(whose, os.getpid()), range(100), 3))
    assert [number for number, _ in found] == list(range(100))
    assert len({process for _, process in found}) == 3


@pytest.mark.parametrize(("items", "processes"), [(range(5), 1), (range(1), 4), (range(0), 4)])
def test_one_process_starts_no_other(items: range, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert list(mapped(abs, items, processes)) == list(items)


def test_what_a_library_prints_does_not_get_among_the_results() -> None:
    found = list(mapped(partial(noisy, os.getpid()), range(100), 2))
    assert [number for number, _ in found] == list(range(100))
    assert len({process for _, process in found}) == 2


def test_items_of_a_process_that_dies_are_done_in_this_one() -> None:
    assert list(mapped(partial(fatal, os.getpid()), range(20), 3)) == list(range(20))


def test_results_that_cannot_be_sent_are_made_in_this_process() -> None:
    found = mapped(partial(unsendable, os.getpid()), range(6), 2)
    assert [each() for each in found] == list(range(6))


def test_an_error_of_an_item_is_raised_in_this_process() -> None:
    with pytest.raises(ValueError, match="no 3"):
        list(mapped(partial(refused, os.getpid()), range(20), 2))


def test_no_process_is_left_when_the_results_are_not_wanted_any_more() -> None:
    found = mapped(partial(whose, os.getpid()), range(1000), 2)
    assert next(found)[0] == 0
    assert len(children(os.getpid(), FRESH)) == 1
    found.close()
    assert children(os.getpid(), FRESH) == []


def test_other_processes_end_when_the_program_is_killed(tmp_path: Path) -> None:
    work = "mapped(time.sleep, [0.2] * 1000, 3)"
    lines = [
        "import time",
        "from memstate_core.state.process.parallel import mapped",
        f"for _ in {work}: print(flush=True)",
    ]
    with program(tmp_path, lines) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "\n"
        others = children(running.pid, FRESH)
        running.kill()
    assert len(others) == 2
    until(lambda: not any(map(is_alive, others)), 60)


def test_a_program_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    lines = [
        "from memstate_core.state.process.parallel import mapped",
        "print('began')",
        "print([*mapped(abs, [1, -2, 3], 2)])",
    ]
    with program(tmp_path, lines) as running:
        assert running.communicate()[0] == "began\n[1, 2, 3]\n"


def test_cores_are_those_that_the_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert cores() == len(allowed)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_each_item_once(threads: int) -> None:
    done: list[int] = []
    in_threads(done.append, range(100), threads=threads)
    assert sorted(done) == list(range(100))


def test_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(3)
    in_threads(lambda _: together.wait(timeout=10), range(3), threads=3)


def test_one_thread_is_this_one() -> None:
    seen: set[int] = set()
    in_threads(lambda _: seen.add(threading.get_ident()), range(3), threads=1)
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 3])
def test_what_fails_in_a_thread_is_raised(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 // item, range(10), threads=threads)
