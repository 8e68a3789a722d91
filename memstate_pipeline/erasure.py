"""The store's lock for writing commands, which first complete an erasure that was interrupted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive

if TYPE_CHECKING:
    from memstate_core.night.erasure.certificate import Certificate
    from memstate_core.night.erasure.erase import Places
    from memstate_core.run.store import Store


@contextmanager
def holding(store: Store, holder: str) -> Iterator[None]:
    """Holds the store's lock for the length of the block; completes an interrupted erasure before it.

    Raises:
        StoreLocked: another process holds it.
    """
    with exclusive(store.home.lock, holder):
        if store.home.begun_erasure.exists():
            from memstate_core.night.erasure.erase import complete

            complete(store, places(store.home))
        yield


def places(home: Home) -> Places:
    """The folders that an erasure covers beside the home."""
    from memstate_core.night.erasure.erase import Places

    return Places(Path(os.environ.get("DAGSTER_HOME") or home.dagster))


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

    with exclusive(store.home.lock, f"process {os.getpid()} (completing an erasure)"):
        return complete(store, places(store.home))
