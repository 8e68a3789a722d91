"""Accesses from requests to the journal: what counts, what does not, and that each is folded once."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.accesses.record import AccessRecord
from memstate_core.model.errors import InboxUnreachable
from memstate_core.policy.sections.recall import RecallSettings
from memstate_core.retrieve.evaluation.recorded_questions import recorded_questions
from memstate_core.run.store import Store
from memstate_core.serve.accesses import Access, AccessRecorder, Journal
from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.counters import Count, Counters
from memstate_core.state.home import Home
from tests.core.serve.conftest import Client, served, serving_process
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path, harbour_store: Store) -> Store:
    shutil.copytree(harbour_store.home.root, tmp_path / "home")
    return Store(Home(tmp_path / "home"), harbour_store.settings)


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    with served(store, Options()) as client:
        yield client.until_ready()


def noted(folder: Path, pattern: str = "*.jsonl") -> list[dict[str, Any]]:
    """The accesses in segments of this kind, without their checksums."""
    lines = [json.loads(line) for path in sorted(folder.glob(pattern)) for line in path.read_text().splitlines()]
    return [{key: line[key] for key in line.keys() - {"crc32"}} for line in lines if "topic_id" in line]


def test_an_answered_query_accesses_its_candidates(store: Store) -> None:
    with served(store, Options()) as client:
        response = client.until_ready().post("/v1/query", {"q": "the yard", "scope": "user:a"}).document
        client.post("/v1/query", {"q": "Acme", "scope": "user:b", "field_names": ["owner"]})
        client.post("/v1/query", {"q": "the yard", "record": False})
        client.post("/v1/query", {"q": "the yard", "scope": "user:nobody"})
        client.get("/v1/topics/yard")
    accesses = noted(store.home.accesses)
    assert all(use.pop("at").endswith("Z") for use in accesses)
    of_yard = [{"topic_id": each["topic_id"], "source": "server", "scope": "user:a"} for each in response["candidates"]]
    assert accesses == [*of_yard, {"topic_id": "crm/42", "source": "server", "fields": ["owner"], "scope": "user:b"}]


def test_questions_are_recorded_by_consent_where_they_count_as_accesses(store: Store) -> None:
    consented = RecallSettings(record=True, sample=1.0, record_scopes=("user:a",))
    settings = store.settings.model_copy(update={"recall": consented})
    with served(Store(store.home, settings), Options()) as client:
        asked = client.until_ready().post("/v1/query", {"q": "the yard", "scope": "user:a"}).document
        client.post("/v1/context", {"q": "is the gate open", "scope": "user:a", "budget": 100})
        client.post("/v1/query", {"q": "of another scope", "scope": "user:b"})
        client.post("/v1/query", {"q": "of every scope"})
        client.post("/v1/query", {"q": "not an access", "scope": "user:a", "record": False})
        client.post("/v1/query", {"q": "with what is pending", "scope": "user:a", "pending": True})
    found = recorded_questions(store.home.recorded_questions, consented, datetime.now(UTC))
    assert [each.text for each in found] == ["is the gate open", "the yard"]
    assert found[1].topics == {each["topic_id"] for each in asked["candidates"][:3]}
    assert found[1].observations == {each["observation_id"] for each in asked["evidence"][:5]}


def test_a_server_may_record_only_on_request(store: Store) -> None:
    with served(store, Options(record=False)) as client:
        client.until_ready().post("/v1/query", {"q": "the yard"})
        client.post("/v1/query", {"q": "Acme", "scope": "user:b", "record": True})
    assert [use["topic_id"] for use in noted(store.home.accesses)] == ["crm/42"]


def test_feedback_is_on_disk_when_it_is_answered(client: Client, store: Store) -> None:
    response = client.post("/v1/feedback", {"topic_id": "gone", "fields": ["gate"], "failed": True, "at": "2026-05-01"})
    expected = {"topic_id": "yard", "fields": ["gate"], "failed": True, "at": "2026-05-01T00:00:00Z"}
    assert (response.status, response.document) == (202, expected)
    assert noted(store.home.accesses, "*.open") == [expected | {"source": "server", "scope": "user:a"}]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"topic_id": "yard"}, 422, "expected either used: true or failed: true"),
        ({"topic_id": "yard", "used": True, "failed": True}, 422, "expected either used: true or failed: true"),
        ({"topic_id": "nobody", "used": True}, 404, "no topic has the id 'nobody'"),
        ({"topic_id": "yard", "used": True, "fields": ["hinge"]}, 422, "expected some of gate"),
        ({"topic_id": "bench", "used": True, "fields": ["hinge"]}, 422, "expected none"),
        ({"topic_id": "yard", "used": True, "at": "2200-01-01"}, 422, "expected no later than"),
        ({"topic_id": "yard", "fialed": True}, 422, "body.fialed"),
    ],
)
def test_feedback_that_cannot_be_counted_is_refused(
    client: Client, store: Store, body: Any, status: int, said: str
) -> None:
    response = client.post("/v1/feedback", body)
    assert response.status == status
    assert said in response.document["detail"]
    assert not store.home.accesses.exists()


def test_a_segment_is_completed_from_time_to_time(tmp_path: Path) -> None:
    recorder = AccessRecorder(tmp_path / "accesses", Options(flush_seconds=0.02, rotate_seconds=0.1))
    recorder.start()
    for name in ("first", "second"):
        recorder.record([Access(name, AT, "user:a")])
        for _ in range(200):
            if name in [use["topic_id"] for use in noted(tmp_path / "accesses")]:
                break
            time.sleep(0.02)
    recorder.close()
    assert len(list((tmp_path / "accesses").glob("*.jsonl"))) == 2
    assert sorted(use["topic_id"] for use in noted(tmp_path / "accesses")) == ["first", "second"]


def test_what_a_disk_refuses_stays_in_memory_up_to_a_limit(tmp_path: Path) -> None:
    blocked = tmp_path / "accesses"
    blocked.write_text("a file where the folder should be")
    recorder = AccessRecorder(blocked, Options(accesses_limit=3))
    recorder.record([Access(str(number), AT, "user:a") for number in range(5)])
    with pytest.raises(OSError, match="exists"):
        recorder.flush()
    blocked.unlink()
    recorder.close()
    assert [use["topic_id"] for use in noted(blocked)] == ["2", "3", "4"]


class Unreachable:
    """A journal at a URL that stops answering after its first accesses."""

    def __init__(self) -> None:
        self.added = list[AccessRecord]()

    def add(self, access: AccessRecord) -> None:
        self.added.append(access)

    def flush(self) -> None:
        if len(self.added) > 1:
            raise InboxUnreachable("s3://bucket/inbox", "no answer")

    def close(self) -> None:
        self.flush()


@pytest.mark.parametrize("journal", [None, Unreachable])
def test_what_cannot_be_written_at_the_end_is_counted_and_logged_in_one_line(
    journal: Callable[[], Journal] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counters, folder = Counters(), tmp_path / "accesses"
    folder.write_text("a file where the folder should be")
    recorder = AccessRecorder(folder, Options(), counters, journal=journal)
    if journal is not None:
        recorder.record([Access("first", AT, "user:a")])
        recorder.flush()
    recorder.record([Access(str(number), AT, "user:a") for number in range(3)])
    recorder.close()
    recorder.close()
    assert counters.read()[Count.ACCESSES_DROPPED] == 3
    (line,) = [record.getMessage() for record in caplog.records if record.name == "memstate.serve"]
    assert line.startswith("accesses cannot be written: ")
    assert line.endswith("; 3 are lost with the end of the server")


def test_a_server_whose_accesses_cannot_be_written_ends_without_a_traceback(home: Path) -> None:
    (home / "accesses").write_text("a file where the folder should be")
    with serving_process(home) as (client, process):
        asked = client.until_ready().post("/v1/query", {"q": "the yard"}).document
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    log = (home / "serve.log").read_text()
    assert f"; {len(asked['candidates'])} are lost with the end of the server" in log
    assert "Traceback" not in log
    assert "Application shutdown complete" in log


def test_feedback_is_flushed_at_the_end_and_folded_once(home: Path) -> None:
    topics = run_memstate(home, "export", "--json").document["topics"]
    yard = next(topic for topic in topics if topic["title"] == "Old Ferry Yard")
    with serving_process(home, "--no-record") as (client, process):
        body = {"topic_id": yard["id"], "used": True, "at": "2026-04-06T12:00:00Z"}
        assert client.until_ready().post("/v1/feedback", body).status == 202
        client.post("/v1/query", {"q": "the yard"})
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert [use["topic_id"] for use in noted(home / "accesses")] == [yard["id"]]
    assert list((home / "accesses").glob("*.open")) == []
    first = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z", "--json").document
    again = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z", "--json").document
    assert (first["counts"]["accesses"], again["counts"]["accesses"]) == (1, 0)
    assert first["state_hash"] == again["state_hash"]
