"""One command at a store at a URL: takes its lease, brings the home to the state there, and sends what is new.

A command that fails, such as a night that a gate refuses, sends what it has as well: what it imported and noted is what
a home of its own would have kept. One that lost its lease, or is interrupted, sends nothing.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from memstate_core.model.errors import LeaseLost, MemstateError
from memstate_core.night.checkout.bring import Brought
from memstate_core.night.checkout.dumps_at_url import take_dumps
from memstate_core.night.checkout.note import store_url, write_checkout
from memstate_core.night.checkout.pull import brought, opened_note, require_same
from memstate_core.night.checkout.send import has_input, named, send_state
from memstate_core.night.checkout.shards_here import ShardsHere, of_brief, of_night
from memstate_core.run.store import Store
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.head import Contents, read_head
from memstate_core.storage.lease import Lease, take_lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import ShardLease, require_no_nights, take_shard
from memstate_core.storage.storage import storage

_log = logging.getLogger("memstate.store")
_SESSIONS: dict[Path, Session] = {}


@contextmanager
def holding_lease(store: Store, holder: str, *, brief: bool = False) -> Iterator[None]:
    """Holds the lease of a store at a URL for the length of the block; does nothing for a home of its own.

    The caller holds the lock of the home.

    Args:
        store: the store.
        holder: the command, for messages on other machines.
        brief: whether nights that run side by side wait for it.

    Raises:
        StoreLocked: another machine holds the lease, or has the night of a shard in progress.
        LeaseLost: another machine took it over meanwhile; the store has what this one did not change.
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: the URL holds another store, or an older state than this home had.
        ConditionalPutsIgnored: the URL holds no store yet, and its storage could not keep writers apart.
        RemoteStoreDamaged: what lies at the URL is not as it was sent.
    """
    where = store_url(store)
    if not where:
        yield
        return
    with _session(store, where, _named(store, holder), brief=brief) as session:
        session.require_no_nights()
        session.begin()
        yield


@contextmanager
def holding_lease_briefly(store: Store, holder: str, *, whole: bool) -> Iterator[None]:
    """The same for a command that may write beside the nights of shards, such as an import.

    Args:
        store: the store.
        holder: the command.
        whole: whether it needs the snapshots of all shards.
    """
    where = store_url(store)
    if not where:
        yield
        return
    with _session(store, where, _named(store, holder), brief=True) as session:
        session.begin(None if whole else of_brief(store))
        yield


@contextmanager
def _session(store: Store, where: str, holder: str, *, brief: bool = False) -> Iterator[Session]:
    """Holds the lease for the length of the block, and sends what it did."""
    session = Session(store, where, holder, brief=brief)
    _SESSIONS[store.home.root.resolve()] = session
    try:
        yield session
        session.commit(sweep=True)
    except LeaseLost:
        raise
    except Exception as error:
        session.keep_failed(error)
        raise
    finally:
        del _SESSIONS[store.home.root.resolve()]
        session.end()


class NightSession:
    """The night of one shard of a store at a URL, beside those of others: it has the lease of the store now and then.

    Args:
        store: the store.
        shard: which shard; the caller holds its lock in the home.
        holder: the night, for messages on other machines.
    """

    def __init__(self, store: Store, shard: str, holder: str) -> None:
        self._store, self._shard, self._where = store, shard, store_url(store)
        self._holder = _named(store, holder)
        self._lease: ShardLease | None = None

    @contextmanager
    def holding_lease(self) -> Iterator[None]:
        """Holds the lease of the store for the length of the block, which begins with the state at the URL.

        The first time takes the lease of the shard, those after it require it. The caller holds the lock of the home.

        Raises:
            StoreLocked: another machine holds the lease of the store, or has the night of the shard in progress.
            LeaseLost: another machine took the shard, or the store; the store has what this one did not change.
            MemstateError: as for `holding_lease`.
        """
        with _session(self._store, self._where, self._holder, brief=True) as session:
            if self._lease is None:
                self._lease = session.take_shard(self._shard, self._holder)
            else:
                self._lease.require()
            session.begin(of_night(self._store, self._shard))
            yield

    def end(self) -> None:
        """Releases the lease of the shard."""
        if self._lease is not None:
            self._lease.release()


def _named(store: Store, holder: str) -> str:
    return f"{holder} of {store.home.root} on {platform.node()}"


def commit_now(store: Store) -> None:
    """Sends what the command in progress has done so far; before others see it, as replicas do.

    It does nothing for a home of its own, or where no command holds the lease.

    Raises:
        MemstateError: as for `holding_lease`.
    """
    session = _SESSIONS.get(store.home.root.resolve())
    if session is not None:
        session.commit()


def _warn(where: str, done: Brought) -> None:
    """Says what an earlier command here did that the store never got."""
    if done.discarded is not None:
        _log.warning("%s never got what a command here recorded; it is kept in %s", where, done.discarded)
    if done.waiting:
        _log.warning("%s never got what was read here, so it waits again: %s", where, ", ".join(done.waiting))


class Session:
    """One command at a store at a URL.

    Args:
        store: the store, whose home is locked.
        where: the URL.
        holder: who takes the lease, for messages.
        brief: the lease is held beside nights of shards, for a part of their work.
    """

    def __init__(self, store: Store, where: str, holder: str, *, brief: bool = False) -> None:
        self._store, self._where = store, where
        self._contents = Contents(where)
        self._place = storage(where, STORE)
        found = read_head(self._place)
        self._note = opened_note(store, where, found)
        if self._note.state is None and not self._note.store:
            self._place.require_usable(store.home)
        if found is None or found[0].state is None:
            require_conditional_puts(self._place, STORE.mark)
        self._seconds = store.settings.store.lease_seconds
        self._lease: Lease = take_lease(self._place, self._note.id, holder, self._seconds, store.layout, brief=brief)
        self._ready = False

    def require_no_nights(self) -> None:
        """Refuses to go on while another machine has the night of a shard in progress."""
        require_no_nights(self._place, self._note.id)

    def take_shard(self, shard: str, holder: str) -> ShardLease:
        """Takes the lease of a shard."""
        return take_shard(self._place, shard, self._note.id, holder, self._seconds)

    def begin(self, wanted: ShardsHere | None = None) -> None:
        """Brings the home to the state at the URL, takes dumps from there, and sends input that waits here alone.

        Args:
            wanted: which shards the home shall have; None for all.
        """
        store, state = self._lease.store, self._lease.state
        require_same(self._where, self._note, store, state)
        self._note, done = brought(self._store, self._contents, self._note, store, state, wanted=wanted)
        _warn(self._where, done)
        self._note = structs.replace(self._note, first=state is None, dirty=True)
        write_checkout(self._store.home, self._note)
        self._ready = True
        taken = take_dumps(self._store, self._place, datetime.now(UTC))
        if self._lease.state is None or has_input(self._store.home, self._note):
            self.commit()
        if taken:
            self._place.remove(taken)

    def commit(self, *, sweep: bool = False) -> None:
        """Sends what is new, and moves the state at the URL.

        Args:
            sweep: also remove what interrupted writers left there.
        """
        self._note = send_state(self._store, self._contents, self._lease, self._note, datetime.now(UTC))
        write_checkout(self._store.home, structs.replace(self._note, dirty=not sweep))
        if sweep:
            self._contents.remove_unnamed(named(self._note.state, self._note.files), self._lease.fence)

    def keep_failed(self, error: Exception) -> None:
        """Sends what a command that failed has kept; if that fails as well, its input waits for the next one."""
        if not self._ready:
            return
        try:
            self.commit(sweep=True)
        except (MemstateError, OSError) as second:
            error.add_note(f"What it had kept was not sent to {self._where}: {second}")

    def end(self) -> None:
        """Releases the lease."""
        self._lease.release()
