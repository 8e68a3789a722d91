"""Work on shards in several processes: a failure or a death is a result, and nobody is left."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from memstate_core.model.errors import MemstateError, StoreLocked
from memstate_pipeline.shard_processes import in_processes
from tests.processes import FRESH, children, program


def work(folder: Path, shard: str) -> str:
    """Returns, fails or dies as the name of the shard says; notes its process."""
    (folder / shard).write_text(str(os.getpid()))
    if shard.startswith("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if shard.startswith("fails"):
        raise StoreLocked("home", shard)
    if shard.startswith("interrupted"):
        raise KeyboardInterrupt
    if shard.startswith("waits"):
        until = time.monotonic() + 60
        while not (folder / shard.removeprefix("waits for ")).exists():
            assert time.monotonic() < until
            time.sleep(0.01)
    if shard.startswith("sleeps"):
        time.sleep(600)
    return f"done {shard}"


def shown(result: str | MemstateError) -> str:
    return result if isinstance(result, str) else f"{type(result).__name__}: {result.message}"


def test_each_shard_has_a_result_whatever_becomes_of_others(tmp_path: Path) -> None:
    shards = ["a", "dies", "fails", "b", "dies too", "c"]
    found = {shard: shown(result) for shard, result in in_processes(partial(work, tmp_path), shards, 2)}
    assert sorted(found) == sorted(shards)
    assert [found[shard] for shard in "abc"] == ["done a", "done b", "done c"]
    assert found["fails"].startswith("StoreLocked: home is locked by fails")
    assert "the run of shard dies failed: its process ended with exit code -9" in found["dies"]
    assert "exit code -9" in found["dies too"]
    assert children(os.getpid(), FRESH) == []


def test_shards_are_worked_on_at_once_and_a_process_takes_several(tmp_path: Path) -> None:
    shards = ["waits for a", "a", "b", "c"]
    assert len([*in_processes(partial(work, tmp_path), shards, 2)]) == len(shards)
    assert len({(tmp_path / shard).read_text() for shard in shards}) == 2


@pytest.mark.parametrize("second", ["interrupted", "a"])
def test_nobody_is_left_when_it_is_interrupted(tmp_path: Path, second: str) -> None:
    results = in_processes(partial(work, tmp_path), ["sleeps", second], 2)
    if second == "a":
        assert next(results) == ("a", "done a")
        results.close()  # type: ignore[attr-defined]
    else:
        with pytest.raises(KeyboardInterrupt):
            next(results)
    assert children(os.getpid(), FRESH) == []


def test_a_program_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    lines = [
        "from memstate_pipeline.shard_processes import in_processes",
        "print('began')",
        "print(sorted(in_processes(str.upper, ['s0', 's1'], 2)))",
    ]
    with program(tmp_path, lines) as running:
        assert running.communicate()[0] == "began\n[('s0', 'S0'), ('s1', 'S1')]\n"
