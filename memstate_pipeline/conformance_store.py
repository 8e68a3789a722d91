"""memstate as the system under test of `memstate conformance`: a temporary store, a real server, real nights.

The server listens on a free port of this machine and its nights run through Dagster, as in production.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.client import MemoryClient
from memstate_core.conformance.system import Limits
from memstate_core.conformance.systems.memstate_http import MemstateOverHttp
from memstate_core.model.text import iso

if TYPE_CHECKING:
    from memstate_core.run.store import Store

_SETTINGS = """[store]
keep_snapshots = 2

[policy]
max_active_topics = {active}
topic_count_soft_limit = {active}
"""
_OFTEN = 0.05
_PATIENCE_SECONDS = 60.0


@contextmanager
def temporary_memstate(folder: Path, limits: Limits) -> Iterator[MemstateOverHttp]:
    """A new store in a folder, served by this process."""
    from memstate_core.run.store import open_store
    from memstate_core.serve.options import Options
    from memstate_core.serve.server import address, bound, server
    from memstate_pipeline import run

    home = folder / "home"
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(_SETTINGS.format(active=limits.active), encoding="utf-8")
    store = open_store(home)
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

    def night(now: datetime) -> None:
        time.sleep(settle_seconds)
        subprocess.run(command.replace("{now}", iso(now)), shell=True, check=True, stdout=subprocess.DEVNULL)

    with MemoryClient(url) as client:
        yield MemstateOverHttp(client, night)


def _wait_for_accesses(store: Store) -> None:
    """Waits until the server has completed its journal; a night takes complete segments only."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(store.home.accesses.glob("*.open")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the server did not complete its journal in {store.home.accesses}")
        time.sleep(_OFTEN)
