"""A real store after one real night of the bundled sample, and the command line as a user types it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests import warm

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


def clean_environment(**given: str) -> dict[str, str]:
    """The environment without settings of memstate and Dagster but those that are given."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MEMSTATE_", "DAGSTER_"))} | given


@pytest.fixture(scope="module")
def no_settings() -> Iterator[None]:
    """The environment without settings of its own, for all that runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - clean_environment().keys():
            patch.delenv(name)
        yield


def run_memstate(home: Path, *arguments: str, **environment: str) -> Told:
    done = warm.run(["-m", "memstate_pipeline", "--home", str(home), *arguments], clean_environment(**environment))
    return Told(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def memstate(tmp_path: Path) -> Memstate:
    """The command line on an empty store of its own."""
    return lambda *arguments, **environment: run_memstate(tmp_path / "home", *arguments, **environment)


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A home that is made once for all processes among which the tests are spread; tests read or copy it."""
    spread = "PYTEST_XDIST_WORKER" in os.environ
    folder = (factory.getbasetemp().parent if spread else factory.getbasetemp()) / f"shared-{name}"
    folder.mkdir(exist_ok=True)
    made = folder / "made"
    with FileLock(folder / "lock"):
        if not made.exists():
            shutil.rmtree(folder / "home", ignore_errors=True)
            make(folder / "home")
            made.touch()
    return folder / "home"


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the demo was played once; tests only read it."""
    return shared(tmp_path_factory, "demo", play_demo)


def play_demo(home: Path) -> None:
    """The one command that starts as on a user's machine, with every library to load."""
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "demo", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), timeout=300, check=False)
    assert told.returncode == 0, told.stderr
    (home / "told.json").write_text(told.stdout)


@pytest.fixture(scope="session")
def demo_told(demo_home: Path) -> dict[str, Any]:
    """What the demo answered as JSON."""
    return dict(json.loads((demo_home / "told.json").read_text()))


@pytest.fixture
def on_demo(demo_home: Path) -> Memstate:
    """The command line on the store of the demo, for reading."""
    return lambda *arguments, **environment: run_memstate(demo_home, *arguments, **environment)
