"""Both clients against a real server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from memstate_core.client import AsyncMemoryClient, MemoryClient, calls
from memstate_core.model.errors import AccessDenied, NotFound, RequestInvalid, ServerFailed
from memstate_core.model.observation import Observation, Scope
from memstate_core.model.parts import FieldValue
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from tests.core.serve.conftest import Client, Publish, encoder, harbour, publish, served

__all__ = ["encoder", "publish"]
KEY = "the-key"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Store:
    return publish(tmp_path_factory.mktemp("client") / "home", harbour)


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Client]:
    with served(store, Options(api_key=KEY, record=False, max_age=1e9)) as client:
        yield client.until_ready()


@pytest.fixture(scope="module")
def memory(server: Client) -> Iterator[MemoryClient]:
    with MemoryClient(server.url, api_key=KEY) as memory:
        yield memory


def test_a_question_is_answered(memory: MemoryClient) -> None:
    answer = memory.query(
        "Is the gate of the ferry yard open?", scope={"type": "user", "id": "a"}, top_k=1, explain=True
    )
    [yard] = answer.candidates
    assert (yard.topic_id, yard.title, yard.scope, answer.snapshot) == ("yard", "Old Ferry Yard", "user:a", "s0/1")
    assert [(field.name, field.current.value) for field in yard.fields] == [("gate", "open")]
    assert yard.explain is not None
    assert yard.explain.parts.keys() >= {"words", "evidence", "vector"}
    assert answer.evidence[0].text == "The gate of the ferry yard is open again."
    assert memory.query("Acme", scope=["user:b", Scope(type="user", id="c")]).candidates[0].topic_id == "crm/42"
    assert memory.query("Acme", topic_ids=["gone"], field_names=["gate"], stages=["semantic"]).candidates[0].fields


def test_topics_are_read_as_they_are_and_were(memory: MemoryClient) -> None:
    assert memory.topic("gone").resolved_from == ["gone"]
    assert memory.topic("crm/42").title == "Acme renewal"
    history = memory.history("yard", expand=True)
    assert [revision.value for revision in history.fields["gate"].history] == ["open", "shut"]
    assert history.topic_history is not None
    assert [(link.from_, link.to, link.kind) for link in history.edges] == [("yard", "bench", "mentions")]
    before = memory.topic("yard", as_of=datetime(2026, 1, 10, tzinfo=UTC))
    assert [revision.value for revision in before.fields["gate"].history] == ["shut"]


def test_topics_come_page_by_page(memory: MemoryClient) -> None:
    every = [topic.topic_id for topic in memory.topics()]
    assert every == ["bench", "yard", "crm/42"]
    assert [topic.topic_id for topic in memory.topics(page_size=1)] == every
    assert [topic.topic_id for topic in memory.topics(scope=Scope(type="user", id="b"))] == ["crm/42"]
    assert [topic.topic_id for topic in memory.topics(scope=["user:a", "user:b"], page_size=2)] == every


def test_observations_are_handed_over(memory: MemoryClient, store: Store) -> None:
    typed = Observation(
        scope=Scope(type="user", id="a"), topic_key="acme", title="Acme", fields=[FieldValue(name="owner", value="Aya")]
    )
    plain = {
        "scope": {"type": "user", "id": "a"}, "topic_key": "acme", "title": "Acme",
        "fields": [{"name": "owner", "value": "Aya"}],
    }  # fmt: skip
    one = memory.ingest(typed)
    both = memory.ingest([plain, {"text": "We moved the call."}])
    assert one.observation_ids[0] == both.observation_ids[0]
    assert (one.accepted, both.accepted, both.topic_ids[1]) == (1, 2, None)
    assert (store.home.inbox / both.file).exists()


def test_the_rest_of_the_api_is_there(memory: MemoryClient) -> None:
    pack = memory.context("Is the gate open?", 60, scope="user:a")
    assert 0 < pack.tokens <= 60
    assert pack.citations[0].topic_id == "yard"
    assert memory.feedback("yard", used=True, fields=["gate"]).fields == ["gate"]
    assert memory.runs(limit=1).runs[0].snapshot == "s0/1"
    assert memory.health().status == "ok"
    ready = memory.ready()
    assert (ready.snapshot, ready.stale, ready.max_age_seconds) == ("s0/1", False, 1e9)
    assert ready.last_run is not None


def test_errors_are_typed_and_have_the_detail_of_the_server(memory: MemoryClient, server: Client) -> None:
    with pytest.raises(NotFound) as missing:
        memory.topic("nobody")
    response = server.get("/v1/topics/nobody", X_API_Key=KEY).document
    assert (missing.value.message, missing.value.kind) == (response["detail"], "topic-not-found")
    assert missing.value.facts["topic_id"] == "nobody"
    with pytest.raises(RequestInvalid, match="'planet:earth' is not a scope"):
        memory.query("x", scope="planet:earth")
    with pytest.raises(RequestInvalid, match="found nothing to remember") as refused:
        memory.ingest({})
    assert refused.value.facts["errors"][0]["reason"] == "missing_content"
    with MemoryClient(server.url, api_key="wrong") as stranger, pytest.raises(AccessDenied):
        stranger.query("x")


def test_a_server_without_a_snapshot_is_not_ready(memory: MemoryClient, store: Store, tmp_path: Any) -> None:
    assert memory.ready().status == "ready"
    empty = Store(type(store.home)(tmp_path / "home"), store.settings)
    with served(empty, Options()) as bare, MemoryClient(bare.url, api_key="") as early:
        with pytest.raises(ServerFailed) as caught:
            early.ready()
        assert caught.value.kind == "store-not-found"


def test_all_of_it_can_be_awaited(server: Client) -> None:
    async def run() -> None:
        async with AsyncMemoryClient(server.url, api_key=KEY) as memory:
            answer = await memory.query("the gate", scope="user:a")
            assert answer.candidates[0].topic_id == "yard"
            assert (await memory.topic("gone")).id == (await memory.history("gone")).id == "yard"
            assert [topic.topic_id async for topic in memory.topics(page_size=2)] == ["bench", "yard", "crm/42"]
            assert (await memory.ingest({"text": "x"})).accepted == 1
            assert (await memory.feedback("yard", failed=True)).failed
            assert (await memory.context("the gate", 60)).tokens > 0
            assert (await memory.ready()).snapshot == (await memory.runs()).runs[0].snapshot
            assert (await memory.health()).status == "ok"
            with pytest.raises(NotFound):
                await memory.topic("nobody")

    anyio.run(run)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("as_structs", [True, False])
def test_a_number_that_is_not_finite_is_refused_and_nothing_is_sent(number: float, as_structs: bool) -> None:
    fields = [FieldValue(name="depth", value=number)] if as_structs else [{"name": "depth", "value": number}]
    observation: Any = {"title": "Harbour", "fields": fields}
    with MemoryClient("http://127.0.0.1:1") as nobody, pytest.raises(RequestInvalid) as refused:
        nobody.ingest(Observation(**observation) if as_structs else observation)
    assert f"found {number} at " in str(refused.value)
    assert "fields[0].value, expected a finite number" in str(refused.value)


@pytest.mark.parametrize("ask", [
    lambda memory: memory.query("Is \ud800 open?"),
    lambda memory: memory.topic("yard\ud800"),
    lambda memory: memory.facts_page("yard \ud800"),
    lambda memory: memory.ingest({"text": "yard \ud800"}),
], ids=["body", "path", "parameter", "observation"])  # fmt: skip
def test_text_that_is_not_unicode_is_refused_and_nothing_is_sent(ask: Callable[[MemoryClient], object]) -> None:
    with MemoryClient("http://127.0.0.1:1") as nobody, pytest.raises(RequestInvalid, match=r"U\+D800"):
        ask(nobody)


@pytest.mark.parametrize("text", [b"yard", bytearray(b"yard"), memoryview(b"yard")])
def test_bytes_are_refused_and_nothing_is_sent(text: Any) -> None:
    """They were stored in base64, as what somebody had said."""
    with MemoryClient("http://127.0.0.1:1") as nobody, pytest.raises(RequestInvalid, match="cannot be sent as JSON"):
        nobody.ingest({"text": text})


def test_both_clients_have_the_same_methods_as_there_are_calls() -> None:
    made = {name for name, kind in inspect.getmembers(calls, inspect.isfunction) if kind.__module__ == calls.__name__}
    public = {name for name in made if not name.startswith("_")}
    for client in (MemoryClient, AsyncMemoryClient):
        assert public <= set(dir(client))
        for name in public:
            given = list(inspect.signature(getattr(calls, name)).parameters)
            method = getattr(client, name)
            assert list(inspect.signature(method).parameters) == given
            assert method.__doc__
