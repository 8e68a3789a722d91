"""Workers of the tests stay on their cores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")


def cores_of(worker: int) -> list[int]:
    """The cores of a process that had all and became a worker."""
    code = (
        "import os\n"
        "from tests.cores import on_a_core_of_its_own\n"
        "os.sched_setaffinity(0, range(os.cpu_count()))\n"
        f"on_a_core_of_its_own({worker})\n"
        "print(*sorted(os.sched_getaffinity(0)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return [int(core) for core in done.stdout.split()]


def test_each_worker_has_a_core_and_those_beyond_have_all() -> None:
    every = cores_of(10_000)
    assert [cores_of(worker) for worker in range(len(every))] == [[core] for core in every]
