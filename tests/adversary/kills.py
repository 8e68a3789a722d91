"""Kills: a night that is killed at a random moment and run again gives the state of a calm one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from memstate_core.night.verify import verify_store
from memstate_core.run.store import open_store
from tests.adversary.attack import a_store, imported
from tests.adversary.tenants import MINE, rows_of
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

LONGEST = 40.0
"""Seconds after which a night is killed at the latest."""


def attack(random: Random, folder: Path, count: int = 1) -> int:
    """Kills nights of one store, each on a copy."""
    prepared = a_store(folder / "prepared")
    imported(prepared, rows_of(random, MINE, 12, "mine"), at=4)
    calm = Path(shutil.copytree(prepared.home.root, folder / "calm"))
    expected = run_memstate(calm, "maintain", "--now", NIGHT, "--json").document["state_hash"]
    for number in range(count):
        home = Path(shutil.copytree(prepared.home.root, folder / f"killed-{number}"))
        command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "maintain", "--now", NIGHT]
        with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.DEVNULL) as run:
            ends = time.monotonic() + random.uniform(1, LONGEST)
            while run.poll() is None and time.monotonic() < ends:
                time.sleep(0.05)
            run.kill()
        again = run_memstate(home, "maintain", "--now", NIGHT, "--json")
        assert again.code == 0, again.stderr
        assert again.document["state_hash"] == expected
        verdicts = verify_store(open_store(home, {})).values()
        assert all(each.passed for found in verdicts for each in found)
    return count
