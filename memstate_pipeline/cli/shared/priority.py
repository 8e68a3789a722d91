"""CPU priority of maintenance: other processes on the machine go first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def lower_priority(store: Store) -> None:
    """Lowers the priority of this process to the setting `store.niceness`; never raises it."""
    os.nice(max(0, store.settings.store.niceness - os.nice(0)))
