"""Set-up for every test: one profile of hypothesis, files in memory, a run history that waits for no disk, one heap and
one thread of Polars for each process, and the umask of memstate's processes.

Hypothesis has no deadlines, and on CI the same examples each time. Workers of xdist share the cores already, and the
frames of tests are small: more threads take a tenth more CPU. That they change no state is the subject of
`tests/pipeline/test_threads.py`. Commands and runs in this process set the umask, so without one from the start, modes
of files would depend on the order of the tests; so would progress bars of the model, which its libraries read when the
first test imports them.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings

from tests.allocator import one_heap
from tests.cores import on_a_core_of_its_own

if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is not None:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when Polars is imported
    on_a_core_of_its_own(int(worker.removeprefix("gw")))
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from memstate_core.embed import encoder
from memstate_core.state.files import PRIVATE_UMASK
from memstate_core.state.kept_open import kept_open
from tests.run_history import hurried
from tests.temporary_files import into_memory

gc.disable()  # until the tests are collected: the million objects that their imports make stay
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process of a test would compile memstate, a third of a second
into_memory(os.environ)
one_heap(os.environ)
os.umask(PRIVATE_UMASK)
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


pytest_plugins = ["tests.storages"]
LONGEST_FIRST = (Path(__file__).parent / "longest_files.txt").read_text().split()
"""The files that take longest, by what was measured; a run would end with one worker busy if they came late."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then those with the most slow tests; the order within a file stays."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    root = Path(__file__).parents[1]
    place = {root / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: (place.get(item.path, len(place)), -slow[item.path]))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker more than there are cores for the whole suite, whose tests also wait: for schedules, pages, processes.

    Only `-n auto` asks for it; the fast subset waits for nothing.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ or "not slow" in config.getoption("markexpr"):
        return None
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _graphs_kept_open() -> Iterator[None]:
    """Steps of a run that a test calls one by one leave small graphs open, as the steps of a night do."""
    with kept_open():
        yield


def _packaged_once(load: Callable[..., Any]) -> Callable[..., Any]:
    """A function that loads the packaged model once for this process, and any other each time."""
    loaded = functools.cache(load)
    return lambda model, **options: (loaded if model == encoder.PACKAGED_MODEL else load)(model, **options)


def pytest_collection_finish() -> None:
    """Before the first test: a cheaper run history, where tests run Dagster in this process; a model that is loaded
    once and not each night; and no libraries among what the garbage collector looks at, half a second each time,
    which it does less often than for a program that must stay small: that saves a twentieth of the CPU time. Parsers
    of the command line are made once and not for each command."""
    if "dagster" in sys.modules:
        hurried()
    typer.main.get_command = functools.cache(typer.main.get_command)
    encoder.verified_model = _packaged_once(encoder.verified_model)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
