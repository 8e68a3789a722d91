"""A small store shared by the tests of commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pipeline.cli import small_store
from tests.pipeline.conftest import clean_environment, shared


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of `small_store`, made once; tests read or copy it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - clean_environment().keys():
            patch.delenv(name)
        return shared(tmp_path_factory, "small", small_store.make)
