"""A real store after one real night of the bundled sample, and the command line as a user types it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
NIGHT = "2026-04-06T02:00:00Z"


@dataclass(frozen=True)
class Told:
    """What a command answered."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)


Memstate = Callable[..., Told]


def run_memstate(home: Path, *arguments: str, **environment: str) -> Told:
    command = [
        sys.executable,
        "-W",
        "error::DeprecationWarning:memstate",
        "-m",
        "memstate_pipeline",
        "--home",
        str(home),
    ]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MEMSTATE_", "DAGSTER_"))}
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=clean | environment, timeout=300, check=False
    )
    return Told(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def memstate(tmp_path: Path) -> Memstate:
    """The command line on an empty store of its own."""
    return lambda *arguments, **environment: run_memstate(tmp_path / "home", *arguments, **environment)


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the demo was played once; tests only read it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    told = run_memstate(home, "demo", "--json")
    assert told.code == 0, told.stderr
    (home / "told.json").write_text(told.stdout)
    return home


@pytest.fixture(scope="session")
def demo_told(demo_home: Path) -> dict[str, Any]:
    """What the demo answered as JSON."""
    return dict(json.loads((demo_home / "told.json").read_text()))


@pytest.fixture
def on_demo(demo_home: Path) -> Memstate:
    """The command line on the store of the demo, for reading."""
    return lambda *arguments, **environment: run_memstate(demo_home, *arguments, **environment)
