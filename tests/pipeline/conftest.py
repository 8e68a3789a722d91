"""The command line as users call it, on an empty store and on the store of the demo."""

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

from tests import commands, warm

os.environ.setdefault("HF_HUB_OFFLINE", "1")
NIGHT = "2026-04-06T02:00:00Z"


@dataclass(frozen=True)
class Answer:
    """The exit code and the output of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)


Memstate = Callable[..., Answer]


def clean_environment(**given: str) -> dict[str, str]:
    """The environment with no settings of memstate and Dagster except the given ones."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MEMSTATE_", "DAGSTER_"))} | given


@pytest.fixture(scope="module")
def no_settings() -> Iterator[None]:
    """An environment without settings of memstate and Dagster for what runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - clean_environment().keys():
            patch.delenv(name)
        yield


@pytest.fixture
def nights_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nights at once, for what runs in this process."""
    monkeypatch.setenv("MEMSTATE_STORE_NIGHTS_AT_ONCE", "2")


def run_memstate(home: Path, *arguments: str, **environment: str) -> Answer:
    """A command on a store, in this process."""
    done = commands.run(["--home", str(home), *arguments], clean_environment(**environment))
    return Answer(done.returncode, done.stdout, done.stderr)


def fork_memstate(home: Path, *arguments: str, **environment: str) -> Answer:
    """A command on a store, in a process of its own."""
    done = warm.run(["-m", "memstate_pipeline", "--home", str(home), *arguments], clean_environment(**environment))
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def memstate(tmp_path: Path) -> Memstate:
    """The command line on an empty store of its own."""
    return lambda *arguments, **environment: run_memstate(tmp_path / "home", *arguments, **environment)


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A home that is made once for all test processes; tests read or copy it."""
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
    """The store of the demo; tests only read it."""
    return shared(tmp_path_factory, "demo", play_demo)


def play_demo(home: Path) -> None:
    """Runs the demo in a fresh interpreter, as on a user's machine."""
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "demo", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr
    (home / "answer.json").write_text(answer.stdout)


@pytest.fixture(scope="session")
def demo_answer(demo_home: Path) -> dict[str, Any]:
    """The JSON of the demo."""
    return dict(json.loads((demo_home / "answer.json").read_text()))


@pytest.fixture
def on_demo(demo_home: Path) -> Memstate:
    """The command line on the store of the demo, for reading commands."""
    return lambda *arguments, **environment: run_memstate(demo_home, *arguments, **environment)
