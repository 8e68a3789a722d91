"""A few cases of each class of attacks."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.adversary import as_of, files


@pytest.mark.slow
def test_hostile_files_stop_nothing_and_each_is_accounted_for(tmp_path: Path) -> None:
    assert files.attack(Random(1), tmp_path, count=len(files.FILES)) == len(files.FILES)


@pytest.mark.slow
def test_the_past_is_that_of_a_world_that_ended_then(tmp_path: Path) -> None:
    assert as_of.attack(Random(1), tmp_path, count=2)
