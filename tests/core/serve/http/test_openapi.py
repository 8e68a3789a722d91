"""The description of the API: whole, consistent, and true of what the server answers to anything at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstate_core.serve.options import Options
from tests.core.serve.conftest import Client, Publish, harbour, served

pytestmark = pytest.mark.slow

ROUTES = {
    ("get", "/healthz"), ("get", "/readyz"), ("get", "/v1/runs"), ("get", "/v1/topics"), ("get", "/v1/facts"),
    ("get", "/v1/resources"),
    ("get", "/v1/topics/{topic_id}"), ("get", "/v1/topics/{topic_id}/history"),
    ("post", "/v1/feedback"), ("post", "/v1/ingest"), ("post", "/v1/query"), ("post", "/v1/context"),
    ("get", "/health"), ("get", "/health/graph"), ("get", "/metrics"), ("get", "/v1/reports/{page}"),
}  # fmt: skip
WORDS = st.sampled_from(["user:a", "yard", "gate", "semantic", "2026-01-10", "", "\0", "é", "q"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | WORDS, inner, max_size=3),
    max_leaves=8,
)
KEYS = {
    "/v1/query": [
        "q",
        "scope",
        "stages",
        "explain",
        "top_k",
        "evidence_k",
        "topic_ids",
        "field_names",
        "as_of",
        "pending",
        "history",
    ],
    "/v1/context": ["q", "scope", "stages", "budget", "as_of", "record", "policy", "tokenizer"],
    "/v1/feedback": ["topic_id", "fields", "used", "failed", "at"],
    "/v1/ingest": [
        "text",
        "title",
        "topic_key",
        "topic_id",
        "scope",
        "fields",
        "edges",
        "kind",
        "observed_at",
        "suggest_similar",
    ],
}
PATHS = [
    "/v1/topics/{}",
    "/v1/topics/{}/history",
    "/v1/{}",
    "/v1/topics?cursor={}",
    "/v1/runs?limit={}",
    "/v1/facts?subject={}",
]
SEEMLY: dict[str, dict[str, Any]] = {
    "/v1/query": {"q": "the gate", "scope": "user:a"},
    "/v1/context": {"q": "the gate", "scope": "user:a", "budget": 100},
    "/v1/feedback": {"topic_id": "yard", "used": True},
    "/v1/ingest": {"text": "The gate is open."},
}


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Iterator[Client]:
    """A server on a store of its own, since some of what is made up here is accepted."""
    with served(publish(tmp_path_factory.mktemp("any") / "home", harbour), Options()) as client:
        yield client.until_ready()


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from references(item)


def test_the_description_names_every_route_with_its_errors(client: Client) -> None:
    schema = client.get("/openapi.json").document
    assert schema["openapi"].startswith("3.1")
    operations = {
        (method, path): response for path, each in schema["paths"].items() for method, response in each.items()
    }
    assert operations.keys() == ROUTES
    for response in operations.values():
        assert set(response["responses"]["default"]["content"]) == {"application/problem+json"}
    page = operations["get", "/v1/reports/{page}"]["responses"]["200"]["content"]
    assert page == {"text/html": {"schema": {"type": "string"}}}
    texts = ("/metrics", "/v1/reports/{page}")
    typed = [response for (_, path), response in operations.items() if path not in texts]
    for response in typed:
        done = next(answer for status, answer in response["responses"].items() if status.startswith("2"))
        assert "$ref" in done["content"]["application/json"]["schema"]
    assert operations["get", "/metrics"]["responses"]["200"]["content"] == {
        "text/plain": {"schema": {"type": "string"}}
    }
    posts = [response for (method, _), response in operations.items() if method == "post"]
    assert all("application/json" in response["requestBody"]["content"] for response in posts)


def test_every_reference_in_the_description_leads_somewhere(client: Client) -> None:
    schema = client.get("/openapi.json").document
    names = {reference.removeprefix("#/components/schemas/") for reference in references(schema)}
    assert {"Observation", "ProblemDocument", "QueryBody", "QueryAnswer"} <= names
    assert names <= schema["components"]["schemas"].keys()


def expect_documented(status: int, kind: str | None, content: bytes) -> None:
    """Nothing is a failure of the server, and every error is a problem document."""
    assert status < 500, content
    if status >= 400:
        assert kind == "application/problem+json"
        assert json.loads(content)["status"] == status


@pytest.mark.parametrize("path", KEYS)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_body_makes_the_server_fail(writable: Client, path: str, data: st.DataObject) -> None:
    strange = st.dictionaries(st.sampled_from(KEYS[path]), VALUES, max_size=3).map(lambda said: SEEMLY[path] | said)
    body = data.draw(strange | st.lists(strange, max_size=2) | VALUES | st.binary(max_size=50))
    response = writable.post(path, body)
    expect_documented(response.status, response.headers["content-type"], response.content)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(
        [
            "/v1/topics/{}",
            "/v1/topics/{}/history",
            "/v1/{}",
            "/v1/topics?cursor={}",
            "/v1/runs?limit={}",
            "/v1/facts?subject={}",
        ]
    ),
    text=st.text(max_size=20) | WORDS,
    asked=st.sampled_from(["", "?as_of=2026-01-10", "?as_of=x", "?expand=true"]),
)
def test_no_path_makes_the_server_fail(writable: Client, path: str, text: str, asked: str) -> None:
    response = writable.get(path.format(quote(text, safe="", errors="replace")) + ("" if "?" in path else asked))
    expect_documented(response.status, response.headers["content-type"], response.content)
