"""The systems under test of `memstate conformance`, by name; memstate in a temporary store with a server and nights.

The server listens on a free port of this machine and its nights run through Dagster, as in production.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.conformance.system import Limits, System
from memstate_core.model.errors import MemstateError
from memstate_core.model.text import iso

if TYPE_CHECKING:
    from memstate_core.conformance.systems.memstate_http import MemstateOverHttp
    from memstate_core.run.store import Store

REQUIRED = ("ingest", "advance", "ask")

_SETTINGS = """[store]
keep_snapshots = 2

[policy]
max_active_topics = {active}
topic_count_soft_limit = {active}
"""
_OFTEN = 0.05
_PATIENCE_SECONDS = 60.0


def opened_system(
    name: str, bound: int, folder: Path, remote: tuple[str, str, float] | None = None
) -> AbstractContextManager[System]:
    """A system by the name of its adapter.

    Args:
        name: memstate, overwrite, append-only, mem0, or `module:factory`, where the factory takes `Limits`.
        bound: how many subjects of a scope may be active.
        folder: an empty folder for what it stores.
        remote: the arguments of `remote_memstate` for a running server.

    Raises:
        ValueError: there is no such adapter, or what the factory makes lacks a method.
    """
    limits = Limits(bound)
    if name == "memstate":
        return temporary_memstate(folder, limits) if remote is None else remote_memstate(*remote)
    if name == "overwrite":
        from memstate_core.conformance.systems.overwrite import OverwriteStore

        return nullcontext(OverwriteStore(limits))
    if name == "append-only":
        from memstate_core.conformance.systems.append_only import AppendOnlyStore

        return nullcontext(AppendOnlyStore(limits))
    if name == "mem0":
        from memstate_core.conformance.systems.mem0_local import Mem0Local

        return nullcontext(Mem0Local(limits, folder))
    return nullcontext(_made(name, limits))


def _made(name: str, limits: Limits) -> System:
    """What a factory of another module makes."""
    module, _, factory = name.partition(":")
    if not factory:
        raise ValueError("expected memstate, overwrite, append-only, mem0, or MODULE:FACTORY")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: the adapter is usually a file beside
    try:
        made: System = getattr(import_module(module), factory)(limits)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{error}; expected a module that can be imported here, and a factory in it") from None
    missing = [each for each in REQUIRED if not callable(getattr(made, each, None))]
    if missing or not isinstance(getattr(made, "name", None), str):
        raise ValueError(f"it has no {', '.join(missing) or 'name'}, expected name, {', '.join(REQUIRED)}")
    return made


@contextmanager
def temporary_memstate(folder: Path, limits: Limits) -> Iterator[MemstateOverHttp]:
    """A new store in a folder, served by this process."""
    from memstate_core.client import MemoryClient
    from memstate_core.conformance.systems.memstate_http import MemstateOverHttp
    from memstate_core.run.store import open_store
    from memstate_core.serve.options import Options
    from memstate_core.serve.server import address, bound, server
    from memstate_pipeline import run

    home = folder / "home"
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(_SETTINGS.format(active=limits.active), encoding="utf-8")
    store = open_store(home)
    store.home.local_only.touch()
    options = Options(record=False, rate_limit=0, poll_seconds=_OFTEN, flush_seconds=_OFTEN, rotate_seconds=0)
    listening = bound("127.0.0.1", 0)
    serving = server(store, options)
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]}, name="memstate-conformance")

    def night(now: datetime) -> None:
        _wait_for_accesses(store)
        run.maintain(open_store(home), now)

    thread.start()
    try:
        with MemoryClient(address(listening), api_key="") as client:
            yield MemstateOverHttp(client, night)
    finally:
        serving.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def remote_memstate(url: str, command: str, settle_seconds: float) -> Iterator[MemstateOverHttp]:
    """A running server, whose nights a shell command runs.

    Args:
        url: where it listens; its store is empty, and its policy has the bound of the scenario.
        command: runs a night; `{now}` in it stands for the logical time.
        settle_seconds: how long to wait before it, so that the server has completed its journal of accesses.
    """
    from memstate_core.client import MemoryClient
    from memstate_core.conformance.systems.memstate_http import MemstateOverHttp

    def night(now: datetime) -> None:
        time.sleep(settle_seconds)
        done = subprocess.run(command.replace("{now}", iso(now)), shell=True, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            message = (
                f"the night of {iso(now)} ended with exit code {done.returncode}, expected 0; see what --night runs"
            )
            raise MemstateError(message)

    with MemoryClient(url) as client:
        yield MemstateOverHttp(client, night)


def _wait_for_accesses(store: Store) -> None:
    """Waits until the server has completed its journal; a night takes complete segments only."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(store.home.accesses.glob("*.open")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the server did not complete its journal in {store.home.accesses}")
        time.sleep(_OFTEN)
