"""Read your writes: what is accepted and not published yet, marked, over an answer that asks for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model import answers
from memstate_core.model.ids import uuid_text
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store, open_store
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.options import Options
from memstate_core.serve.pending import fair_share
from memstate_core.serve.pending.overlay import EMBEDDED_A_QUESTION, Pending
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service
from memstate_core.serve.snapshots.generation import Generation, SharedReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import served as served_snapshots
from tests.core.clocks import SETTLED
from tests.core.retrieve.conftest import Store as Draft
from tests.core.serve.conftest import Client, Publish, harbour, served, serving_process
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

NOW = parse_moment("2026-12-24T00:00:00Z")
SCOPE = {"type": "user", "id": "a"}
GATE = {"topic_id": "yard", "scope": SCOPE, "observed_at": "2026-07-01T00:00:00Z"} | {
    "fields": [{"name": "gate", "value": "locked", "valid_from": "2026-06-30T00:00:00Z"}]
}
SAUNA = {"scope": SCOPE, "text": "We will build a sauna of spruce at the quay.", "observed_at": "2026-07-02T00:00:00Z"}
FERRY = {"topic_key": "ferry", "scope": SCOPE, "title": "The electric ferry", "summary": "A new ferry to the island"}


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Path:
    store = publish(tmp_path_factory.mktemp("pending") / "home", harbour)
    return store.home.root


@pytest.fixture
def store(frozen: Path, tmp_path: Path) -> Store:
    return open_store(Path(shutil.copytree(frozen, tmp_path / "home")))


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    with served(store, Options(record=False)) as client:
        yield client.until_ready()


def ask(client: Client, q: str = "Is the gate of the ferry yard open?", **body: Any) -> Any:
    response = client.post("/v1/query", {"q": q, "pending": True} | body)
    assert response.status == 200, response.content
    response_model(answers.QueryAnswer).model_validate(response.document)
    return response.document


def accept(client: Client, *rows: dict[str, Any]) -> list[str]:
    response = client.post("/v1/ingest", list(rows))
    assert response.status == 202, response.content
    return list(response.document["observation_ids"])


def pending_of(document: Any, topic_id: str) -> list[Any]:
    found = next(each for each in document["candidates"] if each["topic_id"] == topic_id)
    return list(found["pending"])


def texts(document: Any) -> list[str]:
    return [found["text"] for found in document["evidence"] if found.get("pending")]


def test_a_write_is_seen_at_its_topic_and_changes_nothing_published(client: Client) -> None:
    before = ask(client, pending=False)
    [name] = accept(client, GATE)
    assert ask(client, pending=False) == before
    response = ask(client)
    [found] = pending_of(response, "yard")
    assert (found["observation_id"], found["pending"], found["observed_at"]) == (name, True, "2026-07-01T00:00:00Z")
    [field] = found["fields"]
    assert (field["name"], field["value"], field["valid_from"]) == ("gate", "locked", "2026-06-30T00:00:00Z")
    published = [{k: v for k, v in each.items() if k != "pending"} for each in response["candidates"]]
    assert published == before["candidates"]
    assert response["evidence"][: len(before["evidence"])] == before["evidence"]
    assert response["pending"] == {"observations": 1, "complete": True}


@pytest.mark.parametrize("stages", [["semantic", "structural", "temporal"], []])
def test_a_write_that_matches_by_text_is_evidence_marked_as_pending(client: Client, stages: list[str]) -> None:
    accept(client, SAUNA, {"scope": SCOPE, "text": "Lunch was late."})
    response = ask(client, "Which wood is the sauna at the quay built of?", stages=stages)
    assert texts(response) == [SAUNA["text"]]
    assert 0 < response["evidence"][-1]["score"] <= 1
    assert response["evidence"][-1]["topic_id"] is None


FAILED = {"scope": SCOPE, "text": "The sauna test failed.", "kind": "tool_result",
          "details": {"tool": "pytest", "status": "error", "path": "sauna/test_oven.py"}}  # fmt: skip
EDITED = {"scope": SCOPE, "text": "The sauna plan has an oven.", "kind": "file_edit",
          "details": {"path": "sauna/plan.md", "diff_summary": "an oven"}}  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"evidence_kinds": ["tool_result"]}, [FAILED]),
        ({"evidence_kinds": ["tool_result", "file_edit"]}, [FAILED, EDITED]),
        ({"tool": "pytest"}, [FAILED]),
        ({"tool": "pytest", "status": "ok"}, []),
        ({"status": "error"}, [FAILED]),
        ({"path": "sauna"}, [FAILED, EDITED]),
        ({"path": "sauna/plan.md"}, [EDITED]),
        ({"path": "sau"}, []),
        ({}, [FAILED, EDITED, SAUNA]),
    ],
)
def test_filters_of_evidence_hold_for_what_is_pending(
    client: Client, filters: dict[str, Any], found: list[dict[str, Any]]
) -> None:
    accept(client, SAUNA, FAILED, EDITED)
    response = ask(client, "What is new about the sauna?", **filters)
    assert set(texts(response)) == {each["text"] for each in found}
    assert response["pending"]["observations"] == 3
    pending = {each["text"]: each for each in response["evidence"] if each.get("pending")}
    if FAILED["text"] in pending:
        hit = pending[FAILED["text"]]
        assert {name: hit[name] for name in FAILED["details"]} == FAILED["details"]
        assert hit["kind"] == "tool_result"
    if filters:
        assert all(each.get("pending") for each in response["evidence"]), "nothing that is published passes"


def test_a_pending_verification_record_is_no_evidence(client: Client) -> None:
    record = {"type": "verification", "target": "key:sauna", "status": "failed", "message": "The sauna burned down."}
    accept(client, {"scope": SCOPE, "memory": record})
    response = ask(client, "Has the sauna burned down?")
    assert (texts(response), [each for each in response["candidates"] if each["state"] == "pending"]) == ([], [])


def test_embeddings_find_what_terms_do_not(client: Client) -> None:
    accept(client, {"scope": SCOPE, "text": "Our dog Rex had puppies."})
    question = "Did any pets give birth?"
    assert texts(ask(client, question, stages=[])) == []
    assert texts(ask(client, question)) == ["Our dog Rex had puppies."]


def test_a_topic_that_it_would_make_is_a_pending_candidate(client: Client) -> None:
    accept(client, FERRY)
    topic_id = uuid_text("key", "user:a", "ferry")
    response = ask(client, "When does the electric ferry sail?")
    made = response["candidates"][-1]
    assert (made["topic_id"], made["title"], made["state"], made["salience"]) == (
        topic_id, "The electric ferry", "pending", None,
    )  # fmt: skip
    assert [each["title"] for each in made["pending"]] == ["The electric ferry"]
    by_name = ask(client, "Anything?", topic_ids=[topic_id])
    assert [each["topic_id"] for each in by_name["candidates"]] == [topic_id]
    both = ask(client, "Anything?", topic_ids=["bench", topic_id])
    assert [each["topic_id"] for each in both["candidates"]] == ["bench", topic_id]
    assert client.post("/v1/query", {"q": "x", "topic_ids": [topic_id]}).status == 404
    record = client.get(f"/v1/topics/{topic_id}?pending=true")
    response_model(answers.TopicRecord).model_validate(record.document)
    assert (record.document["state"], len(record.document["pending"])) == ("pending", 1)
    assert client.get(f"/v1/topics/{topic_id}").status == 404


def test_old_ids_and_the_past_lead_where_they_should(client: Client) -> None:
    accept(client, GATE | {"topic_id": "gone"})
    record = client.get("/v1/topics/yard?pending=true").document
    response_model(answers.TopicRecord).model_validate(record)
    assert [each["fields"][0]["value"] for each in record["pending"]] == ["locked"]
    assert "pending" not in client.get("/v1/topics/yard").document
    assert pending_of(ask(client, as_of="2026-03-01"), "yard") == []
    assert pending_of(ask(client, field_names=["owner"]), "yard")[0]["fields"] == []


def test_only_the_scopes_that_are_asked(client: Client) -> None:
    accept(client, SAUNA, SAUNA | {"scope": {"type": "user", "id": "b"}, "text": "A sauna of pine at the quay."})
    response = ask(client, "Which wood is the sauna at the quay of?", scope="user:b")
    assert (texts(response), response["pending"]["observations"]) == (["A sauna of pine at the quay."], 1)


def test_a_principal_sees_what_is_pending_in_their_scopes_only(store: Store) -> None:
    service = Service(store, Options(record=False))
    owner, theirs = (Principal("x", scopes, Role.ADMIN) for scopes in (None, frozenset({"user:b"})))
    service.serving.refresh()
    try:
        rows = [GATE, SAUNA, FERRY]
        ids = service.ingest(owner, [json.dumps(row).encode() for row in rows])["topic_ids"]
        asked = Question("The sauna at the quay, the electric ferry, the gate", topic_ids=())
        response = service.query(theirs, asked, pending=True)
        assert response["pending"]["observations"] == 0
        shown = json.dumps([response["candidates"], response["evidence"]])
        assert not any(name in shown for name in ("sauna", "electric", "locked"))
        assert service.query(owner, asked, pending=True)["pending"]["observations"] == 3
        for topic_id in ("yard", ids[2]):
            with pytest.raises(Exception, match="topic"):
                service.topic(theirs, topic_id, pending=True)
    finally:
        service.serving.close()


def test_titles_are_followed_to_the_served_topic(tmp_path: Path, publish: Publish) -> None:
    def fill(draft: Any) -> None:
        harbour(draft)
        alias = uuid_text("title", "user:a", "project", "old ferry yard")
        draft.aliases.append({"alias": alias, "scope": "user:a", "topic_id": "yard"})

    said = {"scope": SCOPE, "title": "OLD  ferry yard"}
    rows = [said | {"topic_kind": "project", "text": "one"}, said | {"text": "two"}, said | {"topic_kind": "boat"}]
    with served(publish(tmp_path / "home", fill), Options(record=False)) as client:
        accept(client.until_ready(), *rows, said | {"placement": "new_topic", "text": "three"})
        response = ask(client)
    assert {each["text"] for each in pending_of(response, "yard")} == {"one", "two"}


# Between import and publication, and after a restart


def test_nothing_disappears_between_import_and_publication(home: Path) -> None:
    row: dict[str, Any] = {
        "topic_key": "yard",
        "scope": {"type": "user", "id": "ines"},
        "observed_at": "2026-04-04T00:00:00Z",
    }
    row |= {"fields": [{"name": "gate", "value": "wide open"}]}
    topic_id = uuid_text("key", "user:ines", "yard")

    def values(client: Client) -> list[Any]:
        found = client.get(f"/v1/topics/{topic_id}?pending=true").document
        return [field["value"] for each in found["pending"] for field in each["fields"]]

    with served(open_store(home), Options(record=False)) as client:
        accept(client.until_ready(), row)
        assert values(client) == ["wide open"]
        store = open_store(home)
        import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="by hand", clock=SETTLED)
        assert not list(store.home.inbox.glob("*.jsonl"))
        assert values(client) == ["wide open"]
    with served(open_store(home), Options(record=False)) as client:
        client.until_ready()
        assert values(client) == ["wide open"]
        assert run_memstate(home, "maintain", "--now", "2026-04-07T00:00:00Z").code == 0
        while client.get("/readyz").document["snapshot"] == "s0/1":
            pass
        assert values(client) == []
        assert client.get(f"/v1/topics/{topic_id}").document["fields"]["gate"]["history"][0]["value"] == "wide open"
        accept(client, row)  # once more: a duplicate, and no news
        assert values(client) == []


def test_a_restart_and_other_writers_are_read_from_the_inbox(store: Store) -> None:
    with serving_process(store.home.root) as (client, _process):
        accept(client.until_ready(), GATE)
        _process.kill()
    (store.home.inbox / "crm.jsonl").write_text(json.dumps(SAUNA) + "\n{torn")
    (store.home.inbox / ".hidden.jsonl").write_text(json.dumps(FERRY) + "\n")
    with served(store, Options(record=False)) as client:
        response = ask(client.until_ready(), "The sauna of spruce, the gate, the electric ferry")
        assert [each["fields"][0]["value"] for each in pending_of(response, "yard")] == ["locked"]
        assert SAUNA["text"] in texts(response)
        assert response["pending"] == {"observations": 2, "complete": True}
        (store.home.inbox / "chats.zip").write_bytes(b"PK")
        assert ask(client)["pending"]["complete"] is False


def test_of_two_contents_of_an_observation_the_one_that_the_run_accepts_is_shown(client: Client) -> None:
    accept(client, GATE | {"observation_id": "x"})
    other = {"observation_id": "x", "scope": SCOPE, "text": "The gate of the ferry yard, worded otherwise."}
    assert client.post("/v1/ingest", [other]).status == 409
    assert texts(ask(client, "worded otherwise")) == []
    # The snapshot holds o0000 already: whatever else is said under its id is refused.
    assert client.post("/v1/ingest", [other | {"observation_id": "o0000"}]).status == 409
    assert ask(client)["pending"]["observations"] == 1


# Bounds


def test_rows_of_one_scope_push_out_none_of_another(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_share, "SCOPE_ROWS", 5)
    for number in range(2):  # the snapshot, which is made by hand, names the ledger's version 1
        accept(client, {"text": f"Before {number}."})
        import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id=str(number), clock=SETTLED)
    accept(client, SAUNA)
    flood = [{"scope": {"type": "user", "id": "flood"}, "text": f"Pebble {number}."} for number in range(30)]
    accept(client, *flood)
    mine = ask(client, "The sauna of spruce", scope="user:a")
    assert SAUNA["text"] in texts(mine)
    assert mine["pending"] == {"observations": 1, "complete": True}
    theirs = ask(client, "Pebble", scope="user:flood")
    assert theirs["pending"] == {"observations": 5, "complete": False}
    report = import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="r", clock=SETTLED)
    assert report.accepted == 31
    assert ask(client, "The sauna of spruce", scope="user:a")["pending"] == {"observations": 1, "complete": True}
    assert ask(client, "Pebble", scope="user:flood")["pending"] == {"observations": 5, "complete": False}


def test_a_row_of_another_scope_dated_back_hides_no_pending_update(client: Client) -> None:
    """The id belongs to the scope of the served topic, even if another scope names it with an earlier date."""
    early = {"topic_id": "yard", "scope": {"type": "user", "id": "b"}, "observed_at": "1970-01-01T00:00:00Z"}
    accept(client, early | {"fields": [{"name": "gate", "value": "stolen"}]})
    accept(client, GATE)
    response = ask(client, "the gate of the yard", scope="user:a")
    assert [each["fields"][0]["value"] for each in pending_of(response, "yard")] == ["locked"]


def test_a_key_owns_its_id_although_another_scope_occupies_it(tmp_path: Path, publish: Publish) -> None:
    """As in a run, an id belongs to the scope whose key makes it, although another one has a served topic with it."""
    lamp = uuid_text("key", "user:b", "lamp")

    def occupied(draft: Draft) -> None:
        harbour(draft)
        draft.topic(lamp, title="Occupied")

    service = Service(publish(tmp_path / "home", occupied), Options(record=False))
    owner, theirs = (Principal("x", scopes, Role.WRITE) for scopes in (None, frozenset({"user:b"})))
    said = {"scope": {"type": "user", "id": "b"}, "title": "The lamp of the quay"}
    service.serving.refresh()
    try:
        service.ingest(owner, [json.dumps({"topic_id": lamp, "scope": SCOPE, "title": "Occupied again"}).encode()])
        service.ingest(theirs, [json.dumps(said | {"topic_key": "lamp"}).encode()])
        assert service.topic(theirs, lamp, pending=True)["title"] == "The lamp of the quay"
        assert service.ingest(theirs, [json.dumps(said | {"topic_id": lamp}).encode()])["accepted"] == 1
    finally:
        service.serving.close()


class CountingEncoder(QuestionEncoder):
    """The real encoder; counts the texts that it is asked for."""

    asked = 0

    def encode(self, texts: Any) -> Any:
        self.asked += len(texts)
        return super().encode(texts)


def test_a_question_embeds_few_pending_texts_and_none_twice(store: Store) -> None:
    encoder = CountingEncoder(PACKAGED_MODEL)
    inbox = store.home.inbox
    inbox.mkdir(parents=True)
    rows = ({"scope": SCOPE, "text": f"Stone {number} lies at the quay."} for number in range(12))
    (inbox / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pending = Pending(store)
    with SharedReader(served_snapshots(store.home, store.shards)[0]) as reader:
        generation = Generation((reader,), encoder)
        for expected in (EMBEDDED_A_QUESTION, 12 - EMBEDDED_A_QUESTION, 0):
            encoder.asked = 0
            document: Any = {"candidates": [], "evidence": []}
            pending.overlay(generation, document, Question("stones", ("user:a",)), NOW)
            assert encoder.asked == 1 + expected
        document = {"candidates": [], "evidence": []}
        pending.overlay(generation, document, Question("stones", stages=frozenset()), NOW)
        assert encoder.asked == 1


def test_a_ledger_of_many_shards_and_of_compacted_files(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour, shards=2)
    may = datetime(2026, 5, 1, tzinfo=UTC)
    for number in range(70):
        row = {"scope": {"type": "user", "id": f"u{number}"}, "text": f"Pebble {number} of the beach."}
        store.home.inbox.mkdir(parents=True, exist_ok=True)
        (store.home.inbox / "x.jsonl").write_text(json.dumps(row) + "\n")
        import_inbox(store.home, store.ledger, store.settings, now=may, run_id=str(number), clock=SETTLED)
    with served(store, Options(record=False)) as client:
        response = ask(client.until_ready(), "pebble", evidence_k=100, stages=[])
    assert sorted(texts(response)) == sorted(f"Pebble {number} of the beach." for number in range(70))


def test_the_ledger_gives_the_rows_since_a_version(store: Store) -> None:
    store.home.inbox.mkdir(parents=True, exist_ok=True)
    versions = [store.ledger.version("evidence")]
    for number in range(3):
        (store.home.inbox / "x.jsonl").write_text(json.dumps({"text": f"n{number}"}) + "\n")
        import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id=str(number), clock=SETTLED)
        versions.append(store.ledger.version("evidence"))

    def since(version: int | None) -> list[str]:
        found: pl.DataFrame = store.ledger.since("evidence", version).collect()
        return sorted(found["text"].drop_nulls())

    assert [since(version) for version in versions] == [["n0", "n1", "n2"], ["n1", "n2"], ["n2"], []]
    assert {"n0", "n1", "n2"} < set(since(None))
