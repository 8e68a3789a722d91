"""A replica over HTTP: it answers as the store does, follows it, refuses writes, and says when its source fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from memstate_core.serve.replica.service import FOLDER
from memstate_core.state.home import Home
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.core.serve.snapshots.test_swap import edition
from tests.core.storage.s3 import Faults
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
URL = "s3://bucket/store"
OPTIONS = Options(replica_of=URL, poll_seconds=0.02, follow_seconds=0.05)


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return Store(Home(tmp_path / "server"), Settings())


@pytest.fixture
def published(tmp_path: Path, publish: Publish, s3_faults: Faults) -> Store:  # noqa: ARG001, the bucket
    store = publish(tmp_path / "home", edition(1))
    publish_to(store, URL)
    return store


@pytest.fixture
def replica(local: Store, published: Store) -> Iterator[Client]:  # noqa: ARG001, what is published
    with served(local, OPTIONS) as client:
        yield client.until_ready()


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def snapshot(client: Client) -> str:
    return str(client.get("/v1/topics/yard").document["snapshot"])


def problems(client: Client) -> list[str]:
    found = client.get("/readyz")
    assert found.status == 200
    return [each["detail"] for each in found.document["replica"]["problems"]]


def second(published: Store, publish: Publish) -> None:
    publish(published.home.root, edition(2), number=2)
    publish_to(published, URL)


def test_a_replica_answers_as_the_store_does(tmp_path: Path, publish: Publish, s3_faults: Faults, local: Store) -> None:
    assert s3_faults.seen == []
    store = publish(tmp_path / "home", harbour)
    publish_to(store, URL)
    asked = {"q": "ferry yard gate", "scope": ["user:a"]}
    with served(store, Options(record=False)) as writer, served(local, OPTIONS) as replica:
        for client in (writer, replica):
            client.until_ready()
        assert replica.post("/v1/query", asked).document == writer.post("/v1/query", asked).document
        for path in ("/v1/topics/yard", "/v1/topics", "/v1/facts"):
            assert replica.get(path).document == writer.get(path).document


def test_a_replica_follows_and_survives_its_source(
    replica: Client, published: Store, publish: Publish, s3_faults: Faults
) -> None:
    state = replica.get("/readyz").document["replica"]
    assert (state["source"], state["problems"]) == (URL, [])
    s3_faults.status, s3_faults.matching = 503, ""
    until(lambda: problems(replica) != [])
    assert snapshot(replica) == "s0/1"
    s3_faults.none()
    until(lambda: problems(replica) == [])
    second(published, publish)
    until(lambda: snapshot(replica) == "s0/2")
    assert problems(replica) == []


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        ("/v1/ingest", {"observation_id": "a", "scope": {"type": "user", "id": "a"}}, "takes no observations"),
        ("/v1/feedback", {"topic_id": "yard", "used": True}, "takes no feedback"),
        ("/v1/query", {"q": "yard", "pending": True}, "knows no pending observations"),
        ("/v1/query", {"q": "yard", "record": True}, "records no accesses"),
        ("/v1/query", {"q": "yard", "as_of": "2026-01-01T00:00:00Z"}, "does not answer as of a past time"),
    ],
)
def test_what_needs_the_writer_is_refused(replica: Client, local: Store, path: str, body: object, what: str) -> None:
    answer = replica.post(path, body)
    assert (answer.status, answer.document["type"]) == (421, "urn:memstate:problem:not-on-replica")
    assert what in answer.document["detail"]
    assert "publish.writer_url" in answer.document["detail"]
    (folder,) = (local.home.root / FOLDER).iterdir()
    assert not any((folder / name).exists() for name in ("inbox", "accesses", "recall", "ledger"))


def test_an_erasure_reaches_a_serving_replica(replica: Client, published: Store, publish: Publish) -> None:
    publish(published.home.root, edition(2), number=2)
    published.home.erasures.mkdir()
    (published.home.erasures / "1.json").write_text("{}")
    publish_to(published, URL)
    until(lambda: snapshot(replica) == "s0/2")
    assert problems(replica) == []


def test_the_command_names_a_source_that_has_nothing(tmp_path: Path) -> None:
    for source in (f"file://{tmp_path}/nothing", "s3://key:hidden@bucket/x"):
        done = run_memstate(tmp_path / "server", "serve", "--port", "0", "--replica-of", source)
        assert done.code in (1, 2)
        assert ("nothing is published there yet" in done.stderr) == source.startswith("file")
        assert "hidden" not in done.stderr
