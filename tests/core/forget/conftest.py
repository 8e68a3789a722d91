"""Prepared stores of `lives.begun`, made once; tests work on copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.core.forget.lives import KEPT, Life, begun
from tests.pipeline.conftest import shared


@pytest.fixture(scope="session")
def young_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after a night in which nothing had faded."""

    def make(root: Path) -> None:
        assert begun(root).night(0.5) == {}

    return shared(tmp_path_factory, "young", make)


@pytest.fixture(scope="session")
def faded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose topics were all forgotten in the night of day 10."""

    def make(root: Path) -> None:
        assert begun(root).night(10) == {"archived": 3, "summarised": 1, "detached": 3}

    return shared(tmp_path_factory, "faded", make)


@pytest.fixture
def young(young_home: Path, tmp_path: Path) -> Life:
    return Life(shutil.copytree(young_home, tmp_path / "home"), **KEPT)


@pytest.fixture
def faded(faded_home: Path, tmp_path: Path) -> Life:
    return Life(shutil.copytree(faded_home, tmp_path / "home"), **KEPT)
