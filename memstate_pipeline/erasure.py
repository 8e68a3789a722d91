"""The lock and the memory budget of commands that write, which first complete an erasure that was interrupted.

Where the store is kept at a URL they hold its lease as well, from the state there to the state that they send
(`memstate_core.night.checkout`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.model.errors import StoreLocked
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

    An erasure, or a change of the number of shards, that was interrupted is completed before it. Of a store at a URL
    the block has the lease and begins with the state there; what it did is sent when it ends.

    Raises:
        StoreLocked: another process, or another machine, holds it.
        LeaseLost: another machine took the lease over; the store at the URL was not changed.
        StoreUnreachable: the storage of the store does not answer.
        StoreUrlRefused: the URL of the settings holds another store.
        RemoteStoreDamaged: what lies at the URL is not as it was sent.
        SettingsError: the settings name another number of shards than the store has.
    """
    lock = exclusive(store.home.lock, holder, PROBED_SECONDS)
    with lock, memory_budget(store.settings.store.memory_mib), kept_open(), _lease(store, holder):
        if store.home.begun_erasure.exists():
            from memstate_core.night.erasure.erase import complete

            complete(store)
        _settle_shards(store)
        yield


def _settle_shards(store: Store) -> None:
    """Completes a change of the number of shards that was interrupted, and refuses settings with another number."""
    if store.home.begun_reshard.exists() or store.home.layout.exists():
        from memstate_core.night.resharding.switch import complete_switch, require_layout

        if not complete_switch(store):
            require_layout(store)


@contextmanager
def writing(store: Store, command: str) -> Iterator[None]:
    """For a command that writes into the ledger beside runs: of a store at a URL it takes turns with them.

    An erasure that was interrupted is completed first.

    Args:
        store: the store.
        command: its name, for those who wait.

    Raises:
        MemstateError: as for `holding`.
    """
    if store.settings.store.url:
        with holding(store, f"process {os.getpid()} (memstate {command})"):
            yield
    else:
        complete_erasure(store)
        yield


def refresh(store: Store, command: str) -> None:
    """For a command that copies the store: completes what was interrupted; brings a checkout to the state at its URL.

    Input that only this home has is sent there.

    Raises:
        MemstateError: as for `holding`.
    """
    with writing(store, command):
        pass
    if store.home.begun_reshard.exists():
        with suppress(StoreLocked), holding(store, f"process {os.getpid()} (memstate {command})"):
            pass  # one that is in progress keeps copies out while it switches


def _lease(store: Store, holder: str) -> AbstractContextManager[None]:
    if not store.settings.store.url:
        return nullcontext()
    from memstate_core.night.checkout.session import holding_lease

    return holding_lease(store, holder)


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
    lock = exclusive(store.home.lock, holder)
    with lock, memory_budget(store.settings.store.memory_mib), _lease(store, holder):
        return complete(store)
