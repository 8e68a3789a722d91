"""The lock and the memory budget of commands that write, which first complete an erasure that was interrupted.

Where the store is kept at a URL they hold its lease as well, from the state there to the state that they send
(`memstate_core.night.checkout`). Nights of several shards at once hold it for parts of their work (`shard_night`);
other commands that need the whole store do not begin while a shard is locked.
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
from memstate_core.state.lock import exclusive, holder_of
from memstate_core.state.process.memory import memory_budget

if TYPE_CHECKING:
    from memstate_core.night.erasure.certificate import Certificate
    from memstate_core.night.erasure.erase import RunHistory
    from memstate_core.run.store import Store

PROBED_SECONDS = 1.0
"""How long a writer waits for the lock: a search for dead runs may hold it for a moment, without being a run."""


@contextmanager
def holding(store: Store, holder: str, *, brief: bool = False) -> Iterator[None]:
    """Holds the store's lock and its memory budget for the length of the block, and keeps graphs open between uses.

    An erasure, or a change of the number of shards, that was interrupted is completed before it. Of a store at a URL
    the block has the lease and begins with the state there; what it did is sent when it ends.

    Args:
        store: the store.
        holder: the command, for those who wait.
        brief: whether nights that run side by side wait for it.

    Raises:
        StoreLocked: another process, or another machine, holds it, or has the night of a shard in progress.
        LeaseLost: another machine took the lease over; the store at the URL was not changed.
        StoreUnreachable: the storage of the store does not answer.
        StoreUrlRefused: the URL of the settings holds another store.
        RemoteStoreDamaged: what lies at the URL is not as it was sent.
        SettingsError: the settings name another number of shards than the store has.
    """
    lock = exclusive(store.home.lock, holder, PROBED_SECONDS, brief=brief)
    with lock, memory_budget(store.settings.store.memory_mib), kept_open():
        _require_no_nights(store)
        with _lease(store, holder, brief=brief):
            _settle(store)
            yield


def _require_no_nights(store: Store) -> None:
    """Refuses to go on while a shard of this home has its night beside others; the caller holds the store's lock."""
    if found := nights_in_progress(store):
        raise StoreLocked(str(store.home.root), "; ".join(found), brief=True)


def nights_in_progress(store: Store) -> list[str]:
    """Who has the night of a shard in progress in this home, of nights that run side by side."""
    return [holder for shard in store.shards if (holder := holder_of(store.home.shard_lock(shard)))]


def _settle(store: Store) -> None:
    """Completes what was interrupted."""
    if store.home.begun_erasure.exists():
        from memstate_core.night.erasure.erase import complete

        complete(store)
    settle_shards(store)


def settle_shards(store: Store) -> None:
    """Completes a change of the number of shards that was interrupted, and refuses settings with another number."""
    from memstate_core.run.shard_count import require_layout

    if store.home.begun_reshard.exists():
        from memstate_core.night.resharding.switch import complete_switch

        if complete_switch(store):
            return
    require_layout(store)


@contextmanager
def writing(store: Store, command: str, *, whole: bool = False) -> Iterator[None]:
    """For a command that writes into the ledger beside runs: of a store at a URL it holds the lease.

    What was interrupted is completed first.

    Args:
        store: the store.
        command: its name, for those who wait.
        whole: whether it needs the snapshots of all shards.

    Raises:
        MemstateError: as for `holding`.
    """
    if store.settings.store.url:
        with holding_briefly(store, f"process {os.getpid()} (memstate {command})", whole=whole):
            yield
    else:
        complete_erasure(store)
        yield


@contextmanager
def holding_briefly(store: Store, holder: str, *, whole: bool = False) -> Iterator[None]:
    """As `holding`, for what may be done while shards have their nights, since it adds to the ledger alone.

    Args:
        store: the store.
        holder: the command, for those who wait.
        whole: whether it needs the snapshots of all shards, also in a bounded checkout.

    Raises:
        MemstateError: as for `holding`.
    """
    complete_interrupted(store, holder)
    lock = exclusive(store.home.lock, holder, PROBED_SECONDS, brief=True)
    with lock, memory_budget(store.settings.store.memory_mib), kept_open():
        if not store.settings.store.url:
            require_settled(store)
            yield
            return
        from memstate_core.night.checkout.session import holding_lease_briefly

        with holding_lease_briefly(store, holder, whole=whole):
            require_settled(store)
            yield


def complete_interrupted(store: Store, holder: str) -> None:
    """Completes an erasure, or a change of the number of shards, that was interrupted in this home.

    Raises:
        MemstateError: as for `holding`.
    """
    if store.home.begun_erasure.exists() or store.home.begun_reshard.exists():
        with holding(store, holder):
            pass


def require_settled(store: Store) -> None:
    """Refuses to go on before what was interrupted is completed; the caller holds the store's lock.

    Raises:
        StoreLocked: something was interrupted.
        SettingsError: the settings name another number of shards than the store has.
    """
    if store.home.begun_erasure.exists() or store.home.begun_reshard.exists():
        raise StoreLocked(str(store.home.root), "a command that was interrupted and has to be completed first")
    settle_shards(store)


def refresh(store: Store, command: str) -> None:
    """For a command that copies the store: completes what was interrupted; brings a checkout to the state at its URL.

    Input that only this home has is sent there.

    Raises:
        MemstateError: as for `holding`.
    """
    with writing(store, command, whole=True):
        pass
    if store.home.begun_reshard.exists():
        with suppress(StoreLocked), holding(store, f"process {os.getpid()} (memstate {command})"):
            pass  # one that is in progress keeps copies out while it switches


def _lease(store: Store, holder: str, *, brief: bool = False) -> AbstractContextManager[None]:
    if not store.settings.store.url:
        return nullcontext()
    from memstate_core.night.checkout.session import holding_lease

    return holding_lease(store, holder, brief=brief)


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
