"""No value of one row makes placement take unbounded memory or time, also where the ledger holds the row already."""

from __future__ import annotations

import json
import os

import pytest

from tests import warm
from tests.core.placement.pills import MEMORY, PILLS, SECONDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("pill", PILLS)
def test_a_hostile_value_is_placed_within_bounds(pill: str) -> None:
    ended = warm.run(["-m", "tests.core.placement.pills", pill], os.environ | {"POLARS_MAX_THREADS": "2"})
    assert ended.returncode == 0, ended.stderr[-2000:]
    used = json.loads(ended.stdout)
    assert used["bytes"] < MEMORY // 4
    assert used["seconds"] < SECONDS
