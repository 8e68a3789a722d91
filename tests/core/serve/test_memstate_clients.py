"""MemState's wire shapes: its clients' requests are taken, and its clients can read what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from memstate_core.embed.encoder import Encoder
from memstate_core.model import answers
from memstate_core.model.ids import uuid_text
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.similar import similar_topics
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.serve.placement_requests import request
from memstate_core.serve.response_models import response_model
from memstate_core.state.current import served as served_snapshots
from memstate_core.state.home import Home
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

# What MemState's clients validate answers with, by the names and types of its wire format.


class Ingested(BaseModel):
    topic_id: str
    applied: list[str] = Field(default_factory=list)
    version_ids: dict[str, str] = Field(default_factory=dict)
    similar_topic_ids: list[str] = Field(default_factory=list)


class Version(BaseModel):
    id: str
    value: Any = None
    valid_from: str | None = None
    provenance: str | None = None
    why_changed: str | None = None
    impact_expected: str | None = None


class FieldAnswer(BaseModel):
    name: str
    field_type: str | None = None
    ref_topic_id: str | None = None
    current: Version | None = None
    history: list[Version] = Field(default_factory=list)


class Bundle(BaseModel):
    topic_id: str
    title: str | None = None
    summary: str | None = None
    topic_kind: str | None = None
    salience: float | None = None
    failed_salience: float | None = None
    neighbors: list[dict[str, Any]] = Field(default_factory=list)
    fields: list[FieldAnswer] = Field(default_factory=list)
    similarity: float | None = None


class Answered(BaseModel):
    query: str
    candidates: list[Bundle] = Field(default_factory=list)
    summary_text: str = ""


def placement(kind: str, *fields: dict[str, Any], **said: Any) -> dict[str, Any]:
    """A request as those clients send it: every key, whether it says something or not."""
    plain = {"value": "", "field_type": "string", "ref_topic_id": None, "why_changed": None, "impact_expected": None}
    nothing: dict[str, Any] = {
        "topic_id": None,
        "title": "",
        "summary": None,
        "topic_kind": None,
        "salience": 1.0,
        "edges": [],
    }
    whole = [plain | {"provenance": "api"} | field for field in fields]
    return {"placement": kind, "fields": whole, "suggest_similar": False} | nothing | said


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Iterator[Client]:
    with served(publish(tmp_path_factory.mktemp("wire") / "home", harbour), Options()) as client:
        yield client.until_ready()


def ingest(client: Client, body: dict[str, Any]) -> Any:
    response = client.post("/v1/ingest", body)
    assert response.status == 202, response.content
    response_model(answers.IngestAnswer).model_validate(response.document)
    return response.document


def test_every_placement_is_taken_and_its_answer_read(writable: Client) -> None:
    new = ingest(writable, placement("new_topic", {"name": "owner", "value": "Aya"}, title="Ferry"))
    read = Ingested.model_validate(new)
    assert read.applied == [f"created_topic:{read.topic_id}", "field:owner"]
    assert (new["observation_ids"], new["topic_ids"], new["accepted"]) == ([new["observation_id"]], [read.topic_id], 1)
    edges = [{"to_topic_id": "yard", "kind": "mentions"}]
    more = placement("extend_topic", {"name": "sails", "value": "daily"}, topic_id=read.topic_id, edges=edges)
    assert Ingested.model_validate(ingest(writable, more)).applied == ["field:sails", "edge:yard"]
    version = ingest(writable, placement("version_field", {"name": "owner", "value": "Priya"}, topic_id=read.topic_id))
    assert Ingested.model_validate(version).applied == ["version:owner"]
    assert version["ignored"] == ["salience"]
    untitled = ingest(writable, placement("new_topic", {"name": "a", "value": "b"}))
    assert Ingested.model_validate(untitled).topic_id


def test_a_turn_and_a_list_are_answered_too(writable: Client) -> None:
    response = ingest(writable, {"text": "Hello.", "observation_id": "h", "mood": "good"})
    assert (response["topic_id"], response["applied"], response["version_ids"]) == (None, ["observation:h"], {})
    assert (response["similar_topic_ids"], response["ignored"]) == ([], ["mood"])
    response = ingest(writable, [{"text": "Hello again."}])  # type: ignore[arg-type]
    assert response.keys() == {"accepted", "observation_ids", "topic_ids", "file"}


def test_similar_topics_are_named_where_they_are_wanted(writable: Client) -> None:
    def similar(title: str, **said: Any) -> Any:
        body = {"title": title, "placement": "new_topic", "scope": {"type": "user", "id": "a"}}
        return ingest(writable, body | said)["similar_topic_ids"]

    assert similar("A bench by the ferry", suggest_similar=True)[0] in ("yard", "bench")
    assert similar("A bench by the ferry", suggest_similar=False) == []
    assert set(similar("A bench by the ferry")) == {"yard", "bench"}
    assert similar("Wooden seats", suggest_similar=True) == ["bench"]
    assert similar("Wooden seats") == []
    assert similar("A bench", scope={"type": "user", "id": "b"}) == []
    assert similar("A bench", scope={"type": "user", "id": "nobody"}, suggest_similar=True) == []


def test_before_the_first_snapshot_nothing_is_similar(tmp_path: Path, harbour_store: Store) -> None:
    with served(Store(Home(tmp_path / "home"), harbour_store.settings), Options()) as client:
        response = ingest(client, placement("new_topic", title="Ferry", suggest_similar=True))
        assert (response["similar_topic_ids"], client.get("/health").status) == ([], 200)
        assert client.get("/health/graph").status == 503


def test_similar_topics_by_the_scores_of_a_query(harbour_store: Store, encoder: Encoder) -> None:
    with SnapshotReader(served_snapshots(harbour_store.home, harbour_store.shards)[0]) as reader:
        assert similar_topics([reader], "user:a", "The long bench", encoder) == ["bench", "yard"]
        assert similar_topics([reader], "user:a", "The long bench", None, but="bench") == ["yard"]
        assert similar_topics([reader], "user:a", " ", encoder) == []


def test_a_request_is_spelt_as_an_observation() -> None:
    sent = placement(
        "extend_topic",
        {"name": "a", "provenance": "ui"},
        {"name": "b", "provenance": "ui", "ref_topic_id": ""},
        {"name": "c", "provenance": "ui", "ref_topic_id": "x"},
        topic_id="t",
    )
    read = request(json.dumps(sent).encode())
    said = json.loads(read.line)
    assert [field.get("ref_topic_id", "kept") for field in said["fields"]] == ["kept", None, "x"]
    assert said["provenance"] == "ui"
    assert not any("provenance" in field for field in said["fields"])
    assert (read.suggest, read.ignored, "suggest_similar" in said) == (False, ["salience"], False)
    sent["fields"][0]["provenance"] = "mcp"
    assert request(json.dumps(sent).encode()).ignored == ["fields.provenance", "salience"]
    own = b'{"fields": [{"name": "a", "value": 1, "ref_topic_id": null, "unit": "m"}], "topic_id": "t"}'
    assert request(own) == type(read)(own, None, ["fields.unit"])


@pytest.mark.parametrize(
    "line", [b"", b"[", b"7", b'{"suggest_similar": 7}', b"\xff", b'{"suggest_similar": true, "fields": 7}']
)
def test_what_is_no_request_is_left_to_the_rules(writable: Client, line: bytes) -> None:
    assert request(line).line == line or b"suggest_similar" in line
    response = writable.post("/v1/ingest", line)
    assert response.status in (202, 400, 422)


# Queries


def test_a_query_of_theirs_is_answered_as_they_read_it(writable: Client) -> None:
    sent: dict[str, Any] = {
        "q": "Is the gate of the ferry yard open?",
        "stages": ["semantic", "structural", "temporal"],
    }
    sent |= {"explain": True, "top_k": 8, "topic_ids": None, "field_names": None}
    response = writable.post("/v1/query", sent)
    assert response.status == 200, response.content
    response_model(answers.QueryAnswer).model_validate(response.document)
    yard = next(each for each in Answered.model_validate(response.document).candidates if each.topic_id == "yard")
    [gate] = yard.fields
    assert gate.current is not None
    assert (gate.current.value, [version.value for version in gate.history]) == ("open", ["shut"])
    assert ("bench", "The long bench") in [(each["id"], each["title"]) for each in yard.neighbors]
    plain = writable.post("/v1/query", sent | {"explain": False}).document["candidates"]
    assert all(field["history"] == [] for each in plain for field in each["fields"])
    asked = writable.post("/v1/query", sent | {"explain": False, "history": True}).document["candidates"]
    assert any(field["history"] for each in asked for field in each["fields"])


def test_health_of_the_process_and_of_the_graph(writable: Client) -> None:
    assert writable.get("/health").document == {"status": "ok"}
    response = writable.get("/health/graph").document
    response_model(answers.GraphHealth).model_validate(response)
    assert (response["status"], response["backend"], response["path"]) == ("ok", "kuzu", "graph.kuzu")
    assert response["counts"] == {"scopes": 2, "topics": 3, "fields": 1, "edges": 1, "evidence": 3}


# Ids


def test_version_ids_are_those_that_the_next_night_gives(home: Path) -> None:
    scope = {"type": "user", "id": "ines"}
    yard = uuid_text("key", "user:ines", "yard")
    said = {"scope": scope, "observed_at": "2026-04-04T00:00:00Z"}
    again = {"name": "gate", "value": "shut"}
    rows = [
        placement(
            "new_topic", {"name": "owner", "value": "Aya"}, {"name": "ends", "value": "May"}, title="Pier", scope=scope
        ),
        placement("version_field", again, topic_id=yard, **said),
        placement("version_field", {"name": "key", "value": "brass"}, topic_id=yard, **said),
        {"topic_key": "yard", "fields": [{"name": "gate", "value": "open"}], **said} | {"observed_at": "2026-03-01"},
    ]
    with served(open_store(home), Options(record=False)) as client:
        response = [ingest(client.until_ready(), row) for row in rows]
    assert response[1]["version_ids"]["gate"] != response[3]["version_ids"]["gate"]
    assert run_memstate(home, "maintain", "--now", "2026-04-07T00:00:00Z").code == 0
    records = {
        record["id"]: record
        for record in map(json.loads, run_memstate(home, "export").stdout.splitlines())
        if record["merged_into"] is None
    }
    for each, row in zip(response, rows, strict=True):
        fields = records[each["topic_id"]]["fields"]
        for field in row["fields"]:
            ids = {revision["id"]: revision["value"] for revision in fields[field["name"]]["history"]}
            assert ids[each["version_ids"][field["name"]]] == field["value"]
    gate = records[yard]["fields"]["gate"]["history"]
    assert [revision["value"] for revision in gate] == ["shut", "open"]
    assert len(gate[0]["evidence_ids"]) == 2
