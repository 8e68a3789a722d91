"""Servers of two versions with other schemas over one publication, as while a new release replaces an old one.

The newer release is this one with another number for the schema of snapshots, set before its process begins.
"""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from memstate_core.night.publication.upload import publish_to
from memstate_core.run.store import Store
from memstate_core.state.snapshots import MANIFEST, SCHEMA_VERSION, Manifest
from tests import warm
from tests.core.serve.conftest import Client, Publish, serving_process
from tests.core.serve.snapshots.test_swap import edition
from tests.pipeline.conftest import clean_environment

pytestmark = pytest.mark.slow
NEWER = f"""
import runpy, sys
from memstate_core.state import snapshots
snapshots.SCHEMA_VERSION = {SCHEMA_VERSION + 1}
for name, module in list(sys.modules.items()):
    if name.startswith("memstate_core.") and hasattr(module, "SCHEMA_VERSION"):
        module.SCHEMA_VERSION = {SCHEMA_VERSION + 1}
runpy.run_module("memstate_pipeline", run_name="__main__", alter_sys=True)
"""


class Load:
    """A thread of requests to the servers that are ready, in turn; what did not answer 200 is kept."""

    def __init__(self) -> None:
        self.ready: list[Client] = []
        self.answers: list[str] = []
        self.failures: list[str] = []
        self.changing, self._ended = threading.Lock(), threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def set(self, *clients: Client) -> None:
        """Asks these from now on; no request to another one is in progress then."""
        with self.changing:
            self.ready = list(clients)

    def _run(self) -> None:
        for number in itertools.count():
            with self.changing:
                client = self.ready[number % len(self.ready)]
                try:
                    answer = client.get("/v1/topics/yard")
                    (self.answers if answer.status == 200 else self.failures).append(answer.content.decode())
                except OSError as error:
                    self.failures.append(repr(error))
            if self._ended.wait(0.01):
                return


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


def snapshot(client: Client) -> str:
    return str(client.get("/v1/topics/yard").document["snapshot"])


def problems(client: Client) -> str:
    return str(client.get("/readyz").document["replica"]["problems"])


def publish_newer(store: Store, where: str, publish: Publish) -> None:
    """What a night of the newer release publishes."""
    publish(store.home.root, edition(2), number=2)
    path = store.home.snapshots("s0") / "2" / MANIFEST
    manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, schema_version=SCHEMA_VERSION + 1)))
    done = warm.run(["-c", NEWER, "--home", str(store.home.root), "publish", where], clean_environment())
    assert done.returncode == 0, done.stderr


def test_the_old_version_serves_the_old_snapshot_until_the_new_one_is_up(tmp_path: Path, publish: Publish) -> None:
    where, store = f"file://{tmp_path}/there", publish(tmp_path / "home", edition(1))
    publish_to(store, where)
    for name in ("old", "late", "new"):
        (tmp_path / name).mkdir()
    serve = ("--replica-of", where, "--follow-seconds", "0.1", "--no-record")
    load = Load()
    with ExitStack() as running:
        old, process = running.enter_context(serving_process(tmp_path / "old", *serve))
        load.set(old.until_ready())
        with load.running():
            publish_newer(store, where, publish)
            until(lambda: f"s0/2 has schema {SCHEMA_VERSION + 1}, expected {SCHEMA_VERSION}" in problems(old))
            late, _ = running.enter_context(serving_process(tmp_path / "late", *serve))
            load.set(old, late.until_ready())  # a machine of the old version that has nothing yet
            assert (snapshot(old), snapshot(late)) == ("s0/1", "s0/1")
            load.set(late)
            ended(process)
            old, process = running.enter_context(serving_process(tmp_path / "old", *serve))
            load.set(old.until_ready())  # on what it had fetched
            new, _ = running.enter_context(serving_process(tmp_path / "new", *serve, start=("-c", NEWER)))
            load.set(old, new.until_ready())
            assert (snapshot(old), snapshot(new)) == ("s0/1", "s0/2")
            load.set(new)
            ended(process)
            answered = len(load.answers)
            until(lambda: len(load.answers) > answered + 20)
    assert load.failures == []
    assert {name for name in ("s0/1", "s0/2") for answer in load.answers if f'"{name}"' in answer} == {"s0/1", "s0/2"}


def ended(process: warm.Process) -> None:
    process.terminate()
    try:
        assert process.wait(30) == 0
    except subprocess.TimeoutExpired:
        pytest.fail("the server did not end")
