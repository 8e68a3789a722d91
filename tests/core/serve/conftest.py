"""Real servers over real snapshots: in a thread on a store built by hand, or as a process after a real night."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memstate_core.embed.encoder import PACKAGED_MODEL, Encoder
from memstate_core.policy.settings import Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from memstate_core.serve.server import address, bound, server
from memstate_core.state.current import move_current
from memstate_core.state.home import Home
from memstate_core.state.snapshots import MANIFEST, SCHEMA_VERSION
from tests import warm
from tests.core.retrieve.conftest import NOW
from tests.core.retrieve.conftest import Store as Draft
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate, shared

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@dataclass(frozen=True)
class Answer:
    """What a request got."""

    status: int
    headers: Message
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class Client:
    """Speaks to a server."""

    url: str

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """A request; a body that is no bytes goes as JSON. Underscores in header names become dashes."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json"} if data is not None else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self("POST", path, body, **headers)

    def until_ready(self, seconds: float = 90) -> Client:
        """Waits until a snapshot is served."""
        ends = time.monotonic() + seconds
        while self.get("/readyz").status != 200:
            assert time.monotonic() < ends, "the server did not become ready"
            time.sleep(0.05)
        return self


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return Encoder()


Fill = Callable[[Draft], None]
Publish = Callable[..., Store]


@pytest.fixture(scope="session")
def publish(encoder: Encoder) -> Publish:
    """Publishes a snapshot written by hand, embedded by the real model, as version `number` of a shard."""

    def publish(root: Path, fill: Fill, number: int = 1, shard: str = "s0", shards: int = 1) -> Store:
        store = Store(Home(root), Settings(store=StoreSettings(shards=shards)))
        draft = Draft()
        draft.encoder = encoder  # type: ignore[assignment]
        fill(draft)
        folder = store.home.snapshots(shard) / str(number)
        made = draft.publish(folder, shard).manifest
        response = msgspec.structs.replace(
            made, schema_version=SCHEMA_VERSION, number=number, embedding_model=PACKAGED_MODEL, now=NOW
        )
        (folder / MANIFEST).write_bytes(msgspec.json.encode(response))
        move_current(store.home, shard, number)
        return store

    return publish


@contextmanager
def served(store: Store, options: Options) -> Iterator[Client]:
    """A server in a thread of this process."""
    listening = bound("127.0.0.1", 0)
    running = server(store, options)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Client(address(listening))
    finally:
        running.should_exit = True
        thread.join(60)
        listening.close()


@contextmanager
def serving_process(
    home: Path, *arguments: str, start: Sequence[str] = ("-m", "memstate_pipeline"), **environment: str
) -> Iterator[tuple[Client, warm.Process]]:
    """The command `memstate serve` on a free port; killed at the end if it still runs."""
    command = [*start, "--home", str(home), "serve", "--port", "0", "--json", *arguments]
    read, write = os.pipe()
    with os.fdopen(read) as response:
        with os.fdopen(write, "wb") as stdout, (home / "serve.log").open("wb") as log:
            process = warm.Process(command, clean_environment(**environment), stdout, log)
        try:
            line = response.readline()
            assert line, (home / "serve.log").read_text()
            yield Client(json.loads(line)["url"]), process
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def harbour(draft: Draft) -> None:
    """A small store of two scopes: topics with fields, links, histories, a merged topic, evidence."""
    draft.topic("yard", title="Old Ferry Yard", summary="A park where the ferries were", topic_kind="project")
    draft.field("yard", "gate", (20, "open"), (3, "shut"))
    draft.field("yard", "title", (0, "Old Ferry Yard"), part="topic")
    draft.field("yard", "summary", (15, "A park where the ferries were"), part="topic")
    draft.topic("bench", title="The long bench", summary="One very long bench of larch")
    draft.topic("gone", title="Ferry Yard", state="merged", merged_into="yard")
    draft.topic("crm/42", title="Acme renewal", scope="user:b")
    draft.edge("yard", "bench", "mentions")
    draft.says("yard", "The gate of the ferry yard is open again.", on=20, actor="Ines", session_id="chat", turn=1)
    draft.says("bench", "The bench will be of larch.", on=21, actor="Marta", session_id="chat", turn=2)
    draft.says("crm/42", "The Acme contract ends in June.", on=22, scope="user:b")


@pytest.fixture(scope="module")
def harbour_store(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Store:
    return publish(tmp_path_factory.mktemp("harbour") / "home", harbour)


@pytest.fixture(scope="module")
def client(harbour_store: Store) -> Iterator[Client]:
    """A server on the harbour that records no accesses, shared by the tests of a module."""
    with served(harbour_store, Options(record=False)) as client:
        yield client.until_ready()


ROWS: list[dict[str, Any]] = [
    {"topic_key": "yard", "title": "Old Ferry Yard", "fields": [{"name": "gate", "value": "shut"}]},
    {"topic_key": "bench", "title": "The long bench", "text": "One very long bench of larch."},
]


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after one real night; tests copy it."""
    return shared(tmp_path_factory, "night", one_night)


def one_night(home: Path) -> None:
    home.mkdir()
    said = {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-01T00:00:00Z"}
    (home / "dump.jsonl").write_text("".join(json.dumps(said | row) + "\n" for row in ROWS))
    assert run_memstate(home, "import", str(home / "dump.jsonl"), "--now", "2026-04-05T00:00:00Z").code == 0
    response = run_memstate(home, "maintain", "--now", NIGHT)
    assert response.code == 0, response.stderr


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_night, tmp_path / "home"))


@pytest.fixture
def keyed_store(tmp_path: Path, harbour_store: Store) -> Store:
    """The harbour's snapshots in a home that takes keys of its own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "snapshots").symlink_to(harbour_store.home.root / "snapshots")
    return Store(type(harbour_store.home)(home), harbour_store.settings)
