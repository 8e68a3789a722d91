"""How long commands take from the start of their process to its end: help, queries, an empty night, definitions."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import serving
from measures import Measure

NIGHT = "2026-04-06T00:00:00Z"


def started(home: Path, rounds: int) -> list[Measure]:
    """Wall and CPU seconds of each command, medians over some rounds.

    Args:
        home: where the demo store is; made if it is missing.
        rounds: how often each command is run.
    """
    if not home.exists():
        _run([*serving.PROGRAM, "--home", str(home), "demo"])
    here = [*serving.PROGRAM, "--home", str(home)]
    commands: dict[str, tuple[list[str], float]] = {
        "memstate --help": ([*serving.PROGRAM, "--help"], 0.25),
        "query for words, demo": ([*here, "query", "the boat", "--stages", "temporal"], 0.8),
        "query with meaning, demo": ([*here, "query"], 1.5),
        "empty maintain, demo": ([*here, "maintain"], 4.0),
        "loading the definitions": ([sys.executable, "-c", "import memstate_pipeline.definitions"], 2.0),
    }
    figures = []
    for name, (command, most) in commands.items():
        spent = [_run(_new(command, number)) for number in range(rounds)]
        figures.append(Measure(name, median(wall for wall, _ in spent), "s", most=most))
        figures.append(Measure(f"{name}: CPU", median(cpu for _, cpu in spent), "s"))
    return figures


def _new(command: list[str], number: int) -> list[str]:
    """The command with a question that no cache knows."""
    return [*command, f"Who repaired boat {time.time_ns()} {number}?"] if command[-1] == "query" else command


def _run(command: Sequence[str]) -> tuple[float, float]:
    """The wall and CPU seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - began, cpu
