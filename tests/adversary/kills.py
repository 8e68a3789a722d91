"""Kills: a night that is killed at a random moment and run again gives the state of a calm one."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from random import Random

from memstate_core.night.verify import verify_store
from memstate_core.run.store import open_store
from tests import warm
from tests.adversary.attack import a_store, imported
from tests.adversary.rows import MINE, rows_of
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate


def attack(random: Random, folder: Path, count: int = 1) -> int:
    """Kills nights of one store, each on a copy and within the time that a calm night takes."""
    prepared = a_store(folder / "prepared")
    imported(prepared, rows_of(random, MINE, 12, "mine"), at=4)
    calm = Path(shutil.copytree(prepared.home.root, folder / "calm"))
    began = time.monotonic()
    expected = run_memstate(calm, "maintain", "--now", NIGHT, "--json").document["state_hash"]
    longest = time.monotonic() - began
    for number in range(count):
        home = Path(shutil.copytree(prepared.home.root, folder / f"killed-{number}"))
        command = ["-m", "memstate_pipeline", "--home", str(home), "maintain", "--now", NIGHT]
        with Path(os.devnull).open("wb") as nowhere:
            run = warm.Process(command, clean_environment(), nowhere, nowhere)
            ends = time.monotonic() + random.uniform(0, longest)
            while run.returncode is None and time.monotonic() < ends:
                time.sleep(0.05)
            run.kill()
            run.wait()
        again = run_memstate(home, "maintain", "--now", NIGHT, "--json")
        assert again.code == 0, again.stderr
        assert again.document["state_hash"] == expected
        verdicts = verify_store(open_store(home, {})).values()
        assert all(each.passed for found in verdicts for each in found)
    return count
