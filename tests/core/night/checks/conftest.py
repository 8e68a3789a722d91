"""The store that is damaged, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memstate_core.night.corrections import correct
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.store import open_store
from tests.core.night.checks.damage import Home
from tests.core.night.checks.store import grown, key
from tests.core.strategies import day
from tests.pipeline.conftest import shared


@pytest.fixture(scope="session")
def grown_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "grown", _grown)


def _grown(root: Path) -> None:
    grown(root)
    shutil.rmtree(root / "cache")


@pytest.fixture(scope="session")
def merged_home(grown_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store after one more correction, which merges two topics."""

    def merge(root: Path) -> None:
        store = open_store(shutil.copytree(grown_home, root), {})
        verdicts = verdict_decisions(read_served(store)["s0"], [(key("boat"), key("fading"), "same")])
        correct(store, "s0", "correction-121", day(121), verdicts, "a person decided it")

    return shared(tmp_path_factory, "grown-merged", merge)


@pytest.fixture
def merged(merged_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(merged_home, tmp_path / "home"))


@pytest.fixture
def home(grown_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(grown_home, tmp_path / "home"))
