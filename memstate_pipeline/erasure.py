"""The lock and the memory budget of commands that write, which first complete an erasure that was interrupted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.state.home import Home
from memstate_core.state.kept_open import kept_open
from memstate_core.state.lock import exclusive
from memstate_core.state.memory import memory_budget

if TYPE_CHECKING:
    from memstate_core.night.erasure.certificate import Certificate
    from memstate_core.night.erasure.erase import RunHistory
    from memstate_core.run.store import Store

PROBED_SECONDS = 1.0
"""How long a writer waits for the lock: a search for dead runs may hold it for a moment, without being a run."""


@contextmanager
def holding(store: Store, holder: str) -> Iterator[None]:
    """Holds the store's lock and its memory budget for the length of the block, and keeps graphs open between uses.

    An erasure that was interrupted is completed before it.

    Raises:
        StoreLocked: another process holds it.
    """
    lock = exclusive(store.home.lock, holder, PROBED_SECONDS)
    with lock, memory_budget(store.settings.store.memory_mib), kept_open():
        if store.home.begun_erasure.exists():
            from memstate_core.night.erasure.erase import complete

            complete(store)
        yield


def run_history(home: Home, clears: bool | None = None) -> RunHistory | None:
    """Dagster's folder, if it is not that of the home.

    Args:
        home: the home.
        clears: whether its record of runs goes; None if nobody decided.
    """
    from memstate_core.night.erasure.erase import RunHistory

    folder = Path(os.environ.get("DAGSTER_HOME") or home.dagster).absolute()
    return None if folder.resolve() == home.dagster.resolve() else RunHistory(folder, clears)


def complete_erasure(store: Store) -> Certificate | None:
    """Completes an interrupted erasure before a command that writes without the store's lock.

    Returns:
        Its certificate; None if there was none.

    Raises:
        StoreLocked: another process holds the store, or is erasing.
    """
    if not store.home.begun_erasure.exists():
        return None
    from memstate_core.night.erasure.erase import complete

    holder = f"process {os.getpid()} (completing an erasure)"
    with exclusive(store.home.lock, holder), memory_budget(store.settings.store.memory_mib):
        return complete(store)
