"""Every route: what it takes, what it answers, and that the answer has the shape that /docs promises."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from memstate_core.model import answers
from memstate_core.retrieve.query import Question, answer
from memstate_core.run.store import Store
from memstate_core.serve.placement_requests import add_neighbor_ids
from memstate_core.serve.response_models import response_model
from memstate_core.serve.snapshots.generation import SharedReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import served as served_snapshots
from tests.core.serve.conftest import Client

QUESTION = {"q": "Is the gate of the ferry yard open?"}


def query(client: Client, **body: Any) -> Any:
    response = client.post("/v1/query", QUESTION | body)
    assert response.status == 200, response.content
    return response.document


def test_a_query_answers_what_retrieval_answers(client: Client, harbour_store: Store) -> None:
    response = query(client, scope="user:a", explain=True, top_k=1, evidence_k=2)
    response_model(answers.QueryAnswer).model_validate(response)
    asked = Question(QUESTION["q"], ("user:a",), top_k=1, evidence_k=2, explain=True, history=True)
    snapshots = served_snapshots(harbour_store.home, harbour_store.shards)
    with SharedReader(snapshots[0]) as reader:
        found = answer([reader], QuestionEncoder(harbour_store.settings.embedding.model), None, asked)
    assert response == add_neighbor_ids(found)
    assert [candidate["topic_id"] for candidate in response["candidates"]] == ["yard"]
    assert response["snapshot"] == "s0/1"


@pytest.mark.parametrize(
    "scope",
    ["user:b", {"type": "user", "id": "b"}, ["user:b"], [{"type": "user", "id": "b"}, "user:nobody"]],
)
def test_a_scope_may_be_written_in_several_ways(client: Client, scope: Any) -> None:
    assert {found["scope"] for found in query(client, scope=scope)["candidates"]} == {"user:b"}


def test_without_scope_every_scope_is_asked(client: Client) -> None:
    assert {found["scope"] for found in query(client)["candidates"]} == {"user:a", "user:b"}


def test_stages_names_and_moments_are_passed_on(client: Client) -> None:
    plain = query(client, stages=[])
    assert all(found["similarity"] is None for found in plain["candidates"])
    only = query(client, topic_ids=["gone"], field_names=["gate"])["candidates"]
    assert [(found["topic_id"], [field["name"] for field in found["fields"]]) for found in only] == [("yard", ["gate"])]
    then = query(client, topic_ids=["yard"], as_of="2026-01-10")["candidates"][0]["fields"]
    assert [field["current"]["value"] for field in then] == ["shut"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "body.q: Field required"),
        ({"q": ""}, "body.q"),
        ({"q": "x", "scop": "user:a"}, "body.scop: Extra inputs are not permitted"),
        ({"q": "x", "scope": "ines"}, "is not a scope: expected TYPE:ID"),
        ({"q": "x", "scope": {"type": "user"}}, "is not a scope: expected TYPE:ID"),
        ({"q": "x", "scope": []}, "body.scope"),
        ({"q": "x", "stages": ["magic"]}, "body.stages.0"),
        ({"q": "x", "top_k": 0}, "body.top_k"),
        ({"q": "x", "top_k": True}, "body.top_k"),
        ({"q": "x", "evidence_k": 100_000}, "body.evidence_k"),
        ({"q": "x", "as_of": "noon"}, "expected an ISO 8601 time"),
        ({"q": "x", "as_of": 1e30}, "expected an ISO 8601 time"),
        ({"q": "x", "as_of": "0001-01-01T00:00:00+14:00"}, "expected an ISO 8601 time"),
    ],
)
def test_an_invalid_question_gets_the_place_of_the_error(client: Client, body: Any, said: str) -> None:
    response = client.post("/v1/query", body)
    assert response.status == 422
    assert said in response.document["detail"]


@pytest.mark.parametrize("text", [r"\ud800", r"\u0000", r"\u202e", " ", r"\ud83d\ude00"])
def test_strange_text_is_a_question_or_an_error_never_a_failure(client: Client, text: str) -> None:
    assert client.post("/v1/query", b'{"q": "%s"}' % text.encode()).status in (200, 422)
    assert client.post("/v1/query", b'{"q": "x", "topic_ids": ["%s"]}' % text.encode()).status in (404, 422)
    assert client.post("/v1/query", b'{"q": "x", "scope": "user:%s"}' % text.encode()).status in (200, 422)


def test_topics_come_page_by_page(client: Client) -> None:
    seen, path = [], "/v1/topics?limit=1"
    cursor = ""
    while True:
        page = client.get(path + cursor).document
        response_model(answers.TopicsPage).model_validate(page)
        seen += [(topic["scope"], topic["topic_id"]) for topic in page["topics"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={quote(page['next_cursor'])}"
    assert seen == [("user:a", "bench"), ("user:a", "yard"), ("user:b", "crm/42")]
    assert [topic["topic_id"] for topic in client.get("/v1/topics?scope=user:b").document["topics"]] == ["crm/42"]
    assert client.get("/v1/topics?scope=user:nobody").document["topics"] == []


@pytest.mark.parametrize("asked", ["cursor=x", "cursor=%00", "cursor=W10=", "limit=0", "limit=x", "scope=ines"])
def test_a_page_that_cannot_be_is_refused(client: Client, asked: str) -> None:
    assert client.get(f"/v1/topics?{asked}").status == 422


@pytest.mark.parametrize("topic_id", ["yard", "gone", "crm/42", "crm%2F42"])
def test_a_topic_by_its_id_or_an_old_one(client: Client, topic_id: str) -> None:
    response = client.get(f"/v1/topics/{topic_id}")
    assert response.status == 200
    response_model(answers.TopicRecord).model_validate(response.document)
    assert response.document["id"] == {"gone": "yard"}.get(topic_id, topic_id.replace("%2F", "/"))
    assert response.document["snapshot"] == "s0/1"


def test_a_topic_as_it_was_and_its_history(client: Client) -> None:
    def gates(path: str) -> list[Any]:
        response = client.get(path).document
        response_model(answers.TopicRecord).model_validate(response)
        return [revision["value"] for revision in response["fields"]["gate"]["history"]]

    assert gates("/v1/topics/yard") == ["open"]
    assert gates("/v1/topics/yard?as_of=2026-01-10") == ["shut"]
    assert "a park" in client.get("/v1/topics/yard").document["summary"].lower()
    assert client.get("/v1/topics/yard?as_of=2026-01-10").document["summary"] is None
    assert query(client, topic_ids=["yard"], as_of="2026-01-10")["candidates"][0]["summary"] is None
    assert client.get("/v1/topics/gone?as_of=2026-01-10").document["id"] == "gone"
    assert gates("/v1/topics/yard/history") == ["open", "shut"]
    assert gates("/v1/topics/yard/history?expand=true") == ["open", "shut"]
    assert client.get("/v1/topics/crm%2F42/history").document["id"] == "crm/42"


@pytest.mark.parametrize("path", ["nobody", "nobody/history", "%00", "", "yard?as_of=2020-01-01"])
def test_an_unknown_topic_is_not_found(client: Client, path: str) -> None:
    response = client.get(f"/v1/topics/{path}")
    assert (response.status, response.document["type"]) == (404, "urn:memstate:problem:topic-not-found")


def test_runs_are_described_by_reports_and_snapshots(client: Client) -> None:
    response = client.get("/v1/runs").document
    response_model(answers.RunsAnswer).model_validate(response)
    assert [(run["run_id"], run["snapshot"], run["counts"]) for run in response["runs"]] == [("run", "s0/1", None)]


@pytest.mark.parametrize("name", ["none.html", "index.json", "..%2Fkeys.json", "%2e%2e%2Findex.html", ".html"])
def test_pages_of_reports_are_served_and_no_other_file(client: Client, harbour_store: Store, name: str) -> None:
    reports = harbour_store.home.reports
    reports.mkdir(exist_ok=True)
    (reports / "a-page-s0.html").write_text("<p>Größe</p>")
    try:
        page = client.get("/v1/reports/a-page-s0.html")
        assert (page.status, page.content.decode()) == (200, "<p>Größe</p>")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert client.get(f"/v1/reports/{name}").status in (404, 422)
    finally:
        (reports / "a-page-s0.html").unlink()


def test_health_and_readiness(client: Client) -> None:
    assert client.get("/healthz").document == {"status": "ok"}
    response = client.get("/readyz").document
    response_model(answers.Readiness).model_validate(response)
    assert response["snapshot"] == "s0/1"
    assert response["last_run"] == {"run_id": "run", "now": "2026-06-01T00:00:00Z", "checks_passed": None}
    assert response["age_seconds"] >= 0


def test_docs_are_served(client: Client) -> None:
    assert b"swagger" in client.get("/docs").content


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/facts?subjct=Acme", "query.subjct: unknown parameter, did you mean subject? expected one of subject,"),
        ("/v1/topics?state=foo", "query.state: unknown parameter, expected one of scope, cursor, limit"),
        ("/v1/topics/yard?as_off=2026-01-10", "query.as_off: unknown parameter, did you mean as_of?"),
        ("/v1/topics/yard/history?expnd=true", "query.expnd: unknown parameter, did you mean expand?"),
        ("/v1/resources?root=true", "query.root: unknown parameter, did you mean roots?"),
        ("/v1/facts?subject=Acme&subject=Yard", "query.subject: found 2 times, expected once"),
        ("/v1/topics?limit=1&limit=2&scope=user:a&scope=user:b", "query.limit: found 2 times, expected once"),
        ("/v1/runs?limt=2", "query.limt: unknown parameter, did you mean limit?"),
        ("/readyz?shrd=s0", "query.shrd: unknown parameter, did you mean shard?"),
        ("/health?x=1", "query.x: unknown parameter, this path takes none"),
        ("/v1/reports/index.html?run=1", "query.run: unknown parameter, this path takes none"),
        ("/v1/resources?parent=a&roots=true", "query.roots: found parent and roots, expected at most one of uri,"),
        ("/v1/resources?uri=a&parent=a", "query.parent: found uri and parent, expected at most one of uri,"),
    ],
)
def test_a_parameter_that_a_route_does_not_know_is_refused(client: Client, path: str, said: str) -> None:
    response = client.get(path)
    assert (response.status, response.document["type"]) == (422, "urn:memstate:problem:invalid-request")
    assert response.document["detail"].startswith(said)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/topics", "/v1/topics/yard", "/v1/runs"])
def test_head_is_answered_as_get_without_the_body(client: Client, path: str) -> None:
    response, body = client("HEAD", path), client.get(path)
    assert (response.status, response.content) == (200, b"")
    assert response.headers["content-type"] == body.headers["content-type"]
    assert path in ("/metrics", "/readyz") or response.headers["content-length"] == body.headers["content-length"]


def test_head_finds_nothing_where_get_does_not(client: Client) -> None:
    assert client("HEAD", "/v1/topics/nobody").status == 404
    assert client("HEAD", "/v1/query").status == 405


@pytest.mark.parametrize("path", ["/v1/query", "/v1/context", "/v1/feedback", "/v1/ingest"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_body_must_be_declared_as_json(client: Client, path: str, kind: str) -> None:
    response = client.post(path, QUESTION, Content_Type=kind)
    assert (response.status, response.document["type"]) == (415, "urn:memstate:problem:unsupported-media-type")
    assert response.document["detail"] == (
        f"found content type '{kind}', expected the header Content-Type: application/json"
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"q": }', "body: no JSON at character 7 (Expecting value), expected one object"),
        (b'{"q": "\xff"}', "body: not UTF-8 at byte 8 (invalid start byte), expected JSON in UTF-8"),
    ],
)
def test_a_body_that_is_no_json_gets_the_place_of_the_error(client: Client, body: bytes, said: str) -> None:
    response = client.post("/v1/query", body)
    assert (response.status, response.document["detail"]) == (422, said)
    assert client.post("/v1/ingest", body).status == client.post("/v1/ingest", b"[" + body).status == 422
