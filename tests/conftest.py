"""Set-up for every test: one profile of hypothesis, and a run history that waits for no disk.

Hypothesis has no deadlines, and on CI the same examples each time.
"""

from __future__ import annotations

import os
import sys

from hypothesis import settings

from tests.run_history import hurried

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_finish() -> None:
    """Before the first test, where tests run Dagster in this process."""
    if "dagster" in sys.modules:
        hurried()
