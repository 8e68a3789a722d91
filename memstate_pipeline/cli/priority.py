"""How maintenance shares the machine: it lets others go first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def step_aside(store: Store) -> None:
    """Lowers the priority of this process, for good, to what `store.niceness` says; never raises it."""
    os.nice(max(0, store.settings.store.niceness - os.nice(0)))
