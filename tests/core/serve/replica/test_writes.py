"""Writes through replicas: in the inbox at the URL when they are acknowledged, refused or answered with 503 else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.inbox import import_inbox
from memstate_core.night.publication.fetch import fetch_inbox, release_imported
from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import PublishSettings, Settings
from memstate_core.run.store import Store
from memstate_core.serve import service
from memstate_core.serve.options import Options
from memstate_core.serve.replica.service import FOLDER
from memstate_core.state.home import Home
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import waiting_objects
from memstate_core.storage.storage import storage
from tests.core.clocks import SETTLED
from tests.core.serve.conftest import Answer, Client, Publish, harbour, served
from tests.core.storage.s3 import Faults
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
URL = "s3://bucket/store"
OPTIONS = Options(
    replica_of=URL, poll_seconds=0.02, follow_seconds=0.05, rotate_seconds=0.1, accept_writes=True, record=False
)
SCOPE = {"type": "user", "id": "a"}
ROW: dict[str, Any] = {"scope": SCOPE, "text": "The gate is open.", "observation_id": "gate"}


def publishing(store: Store, *, accept: bool = True, url: str = URL) -> Store:
    section = PublishSettings.model_construct(url=url, accept_writes=accept)
    made = Store(store.home, store.settings.model_copy(update={"publish": section}))
    publish_to(made, url)
    return made


@pytest.fixture
def store(tmp_path: Path, publish: Publish, s3_faults: Faults) -> Store:  # noqa: ARG001, the bucket
    return publishing(publish(tmp_path / "home", harbour))


@pytest.fixture
def replicas(tmp_path: Path, store: Store) -> Iterator[list[Client]]:  # noqa: ARG001, what is published
    """Two replicas on machines of their own."""
    with ExitStack() as running:
        homes = [Store(Home(tmp_path / name), Settings()) for name in ("first", "second")]
        found = [running.enter_context(served(home, OPTIONS)).until_ready() for home in homes]
        for client in found:  # FastAPI builds the routes at the first request, which two servers of a process must not
            assert client.get("/v1/topics").status == 200  # do at once
        yield found


def names(url: str = URL) -> list[str]:
    return [each.name for each in waiting_objects(storage(url, INBOX)).objects]


def night(store: Store, url: str = URL) -> list[str]:
    """Takes what lies at the URL; the texts that the store has then."""
    now = datetime.now(UTC)
    fetch_inbox(store, url, now)
    report = import_inbox(store.home, store.ledger, store.settings, now=now, run_id="night", clock=SETTLED)
    assert report.errors == ()
    collect_accesses(store.home, store.ledger, store.settings, now, "night")
    release_imported(store, url)
    assert names(url) == []
    return sorted(store.ledger.scan("evidence").filter(run_id="night").collect()["text"].drop_nulls())


def accesses(store: Store) -> list[tuple[str, bool]]:
    return sorted(store.ledger.scan("accesses").collect().select("topic_id", "failed").iter_rows())


def problem(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.document["type"].rpartition(":")[2]


def until(holds: Callable[[], bool]) -> None:
    import time

    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_the_answer_is_that_of_the_store_and_the_object_is_there(
    replicas: list[Client], store: Store, tmp_path: Path
) -> None:
    shutil.copytree(store.home.root / "snapshots", tmp_path / "writer" / "snapshots")
    rows = [ROW, {"scope": SCOPE, "title": "Yard", "placement": "new_topic", "topic_key": None}]
    with served(Store(Home(tmp_path / "writer"), Settings()), Options()) as writer:
        local = writer.until_ready().post("/v1/ingest", rows)
    answer = replicas[0].post("/v1/ingest", rows)
    assert (answer.status, local.status) == (202, 202)
    assert {**answer.document, "file": ""} == {**local.document, "file": ""}
    assert names() == [answer.document["file"]]
    assert night(store) == [ROW["text"]]


@pytest.mark.parametrize(
    "body",
    [b'{"txt": "x"}', b'{"text": NaN}', b"[", b'[{"text": "x"}, 7]', b'{"text": "x", "observed_at": "2200-01-01"}'],
)
def test_what_the_store_would_refuse_is_refused(replicas: list[Client], body: bytes) -> None:
    assert replicas[0].post("/v1/ingest", body).status in (400, 422)
    assert names() == []


def test_a_request_is_stored_once_at_any_replica(replicas: list[Client], store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: replicas[number % 2].post("/v1/ingest", [ROW]), range(12)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.document["file"] for answer in answers}) == len(names()) == 1
    assert night(store) == [ROW["text"]]
    assert replicas[1].post("/v1/ingest", [ROW]).status == 202
    assert night(store) == [ROW["text"]]


def test_two_replicas_at_once_lose_nothing(replicas: list[Client], store: Store) -> None:
    def post(number: int) -> int:
        return replicas[number % 2].post("/v1/ingest", [{"scope": SCOPE, "text": f"text {number:02}"}]).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(post, range(40))) == {202}
    assert night(store) == [f"text {number:02}" for number in range(40)]


def test_another_content_of_an_id_is_refused_or_quarantined(replicas: list[Client], store: Store) -> None:
    """The replica that accepted the first one knows; for the other, the storage decides which was first."""
    assert replicas[0].post("/v1/ingest", ROW).status == 202
    other = ROW | {"text": "The gate is shut."}
    assert problem(replicas[0].post("/v1/ingest", other)) == (409, "observations-refused")
    until(lambda: datetime.now(UTC).microsecond < 200_000)  # the storage counts in seconds
    until(lambda: datetime.now(UTC).microsecond > 300_000)
    assert replicas[1].post("/v1/ingest", other).status == 202
    assert night(store) == [ROW["text"]]
    assert store.ledger.scan("quarantine").collect()["reason"].to_list() == ["conflicting_observation"]


def test_clocks_an_hour_apart_change_nothing(
    replicas: list[Client], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first replica is an hour ahead, the second an hour behind, and the one behind writes last."""
    for client, skew, text in zip(replicas, (1, -1), ("ahead", "behind"), strict=True):
        moment = datetime.now(UTC) + timedelta(hours=skew)
        monkeypatch.setattr(service, "clock", lambda moment=moment: moment)
        said = {"scope": SCOPE, "text": text, "observed_at": moment.isoformat()}
        assert client.post("/v1/ingest", [said]).status == 202
        assert client.post("/v1/feedback", {"topic_id": "yard", "used": True}).status == 202
    assert night(store) == ["ahead", "behind"]
    assert accesses(store) == [("yard", False)] * 2
    assert store.ledger.count("quarantine") == 0


def test_feedback_and_accesses_reach_the_store_once(replicas: list[Client], store: Store) -> None:
    body = {"topic_id": "yard", "failed": True}
    assert replicas[0].post("/v1/feedback", body).status == 202
    assert len(names()) == 1  # before it was answered
    assert replicas[1].post("/v1/query", {"q": "ferry yard", "record": True, "top_k": 1}).status == 200
    assert replicas[1].post("/v1/query", {"q": "ferry yard", "top_k": 1}).status == 200
    until(lambda: len(names()) == 2)
    night(store)
    assert accesses(store) == [("yard", False), ("yard", True)]
    night(store)
    assert len(accesses(store)) == 2


def test_what_queries_return_is_recorded_as_on_any_server_and_stored_at_the_end(tmp_path: Path, store: Store) -> None:
    patient = replace(OPTIONS, rotate_seconds=600, record=True)
    with served(Store(Home(tmp_path / "first"), Settings()), patient) as client:
        client.until_ready()
        for record in ({}, {"record": False}):
            assert client.post("/v1/query", {"q": "ferry yard", "top_k": 1} | record).status == 200
        assert names() == []
    assert len(names()) == 1
    night(store)
    assert accesses(store) == [("yard", False)]


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_storage_that_fails_is_503_and_nothing_acknowledged_is_lost(
    replicas: list[Client], store: Store, s3_faults: Faults, status: int
) -> None:
    client = replicas[0]
    assert client.post("/v1/ingest", [ROW]).status == 202
    s3_faults.status, s3_faults.matching, s3_faults.methods = status, "jsonl", ("PUT",)
    more = {"scope": SCOPE, "text": "The gate is shut."}
    for path, body in (("/v1/ingest", [more]), ("/v1/feedback", {"topic_id": "yard", "used": True})):
        answer = client.post(path, body)
        assert problem(answer) == (503, "inbox-unreachable")
        assert answer.headers["Retry-After"] == "5"
        assert "bucket" not in answer.document["detail"]
    assert client.post("/v1/query", {"q": "ferry yard"}).status == 200
    writes = client.get("/readyz").document["replica"]["writes"]
    assert (writes["accepted"], str(status) in writes["problem"]) == (True, True)
    s3_faults.none()
    assert client.post("/v1/ingest", [more]).status == 202
    assert client.get("/readyz").document["replica"]["writes"] == {"accepted": True, "problem": None, "since": None}
    at = {"topic_id": "yard", "used": True, "at": "2026-05-01"}
    assert [client.post("/v1/feedback", at).status for _ in range(2)] == [202, 202]
    assert len(names()) == 3
    assert night(store) == sorted([ROW["text"], more["text"]])
    assert accesses(store) == [("yard", False)]


def test_a_slow_storage_is_waited_for(replicas: list[Client], store: Store, s3_faults: Faults) -> None:
    s3_faults.seconds, s3_faults.matching = 1.0, "jsonl"
    assert replicas[0].post("/v1/ingest", [ROW]).status == 202
    s3_faults.none()
    assert night(store) == [ROW["text"]]


def test_a_request_that_ran_out_of_time_may_be_sent_again(tmp_path: Path, store: Store, s3_faults: Faults) -> None:
    hurried = replace(OPTIONS, request_seconds=0.5)
    with served(Store(Home(tmp_path / "first"), Settings()), hurried) as client:
        client.until_ready()
        s3_faults.seconds, s3_faults.matching = 1.5, "jsonl"
        assert client.post("/v1/ingest", [ROW]).status == 503
        s3_faults.none()
        assert client.post("/v1/ingest", [ROW]).status == 202
    assert night(store) == [ROW["text"]]


@pytest.mark.parametrize("accept", [False, True])
def test_both_sides_have_to_agree(tmp_path: Path, store: Store, accept: bool) -> None:
    """A replica acknowledges nothing that the store would not fetch, and takes nothing unless it is set to."""
    publishing(store, accept=accept)
    with served(Store(Home(tmp_path / "first"), Settings()), replace(OPTIONS, accept_writes=not accept)) as client:
        client.until_ready()
        for path, body in (
            ("/v1/ingest", ROW),
            ("/v1/feedback", {"topic_id": "yard", "used": True}),
            ("/v1/query", {"q": "yard", "record": True}),
        ):
            answer = client.post(path, body)
            assert problem(answer) == (421, "not-on-replica")
            assert ("publish.accept_writes" in answer.document["detail"]) is not accept
        assert not client.get("/readyz").document["replica"]["writes"]["accepted"]
        publishing(store)
        if not accept:
            until(lambda: client.post("/v1/ingest", ROW).status == 202)


def test_a_limited_key_names_topics_of_its_scope_alone(tmp_path: Path, store: Store) -> None:
    local = Store(Home(tmp_path / "first"), Settings())
    made = run_memstate(local.home.root, "keys", "add", "agent", "--scope", "user:a", "--role", "write", "--json")
    key = {"X_API_Key": made.document["key"]}
    with served(local, OPTIONS) as client:
        until(lambda: client.get("/readyz", **key).status == 200)
        for row, status in (
            ({"topic_id": "yard", "text": "x", "scope": SCOPE}, 202),
            ({"topic_id": "crm/42", "text": "x", "scope": SCOPE}, 422),
            ({"text": "x", "scope": {"type": "user", "id": "b"}}, 403),
        ):
            assert client.post("/v1/ingest", [row], **key).status == status
    assert len(names()) == 1
    night(store)


def test_a_folder_serves_as_well(tmp_path: Path, publish: Publish) -> None:
    url = f"file://{tmp_path}/shared"
    store = publishing(publish(tmp_path / "home", harbour), url=url)
    with served(Store(Home(tmp_path / "first"), Settings()), replace(OPTIONS, replica_of=url)) as client:
        assert client.until_ready().post("/v1/ingest", [ROW]).status == 202
        assert client.post("/v1/feedback", {"topic_id": "yard", "used": True}).status == 202
    assert len(names(url)) == 2
    assert night(store, url) == [ROW["text"]]
    (folder,) = (tmp_path / "first" / FOLDER).iterdir()
    assert not any((folder / name).exists() for name in ("inbox", "accesses", "recall", "ledger"))


def test_the_option_is_for_replicas(tmp_path: Path) -> None:
    done = run_memstate(tmp_path / "home", "serve", "--port", "0", "--accept-writes")
    assert done.code == 2
    assert "--replica-of" in done.stderr
