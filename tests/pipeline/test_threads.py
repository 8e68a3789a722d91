"""The number of threads of Polars changes how long a run takes, never what it publishes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.conftest import clean_environment

pytestmark = pytest.mark.slow
DEMO = "import polars; print(polars.thread_pool_size()); from memstate_pipeline.cli.main import main; main()"


def state_hash(home: Path) -> str:
    """The hash of the first state that a store published."""
    return str(json.loads((home / "snapshots" / "s0" / "1" / "manifest.json").read_text())["state_hash"])


def test_five_threads_publish_what_the_threads_of_other_tests_publish(demo_home: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DEMO, "--home", str(tmp_path / "home"), "demo", "--json"]
    environment = clean_environment(POLARS_MAX_THREADS="5")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5\n")
    assert state_hash(tmp_path / "home") == state_hash(demo_home)
