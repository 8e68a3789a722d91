"""What stands before every route: keys, names, sizes, request ids, errors as problem documents, the log."""

from __future__ import annotations

import http.client
import inspect
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model import errors
from memstate_core.model.errors import MemstateError
from memstate_core.run.store import Store
from memstate_core.serve.app import api
from memstate_core.serve.options import OPEN_PATHS, Options, api_key, is_loopback
from memstate_core.serve.problems import STATUS, problem_of
from memstate_core.serve.service import Service
from memstate_core.serve.telemetry.log import JsonLines
from tests.core.model.errors.test_errors import EXAMPLES
from tests.core.serve.conftest import Client, served

KEY = "prïvate-key"


@pytest.fixture(scope="module")
def locked(harbour_store: Store) -> Iterator[Client]:
    """A server that asks for a key."""
    with served(harbour_store, Options(api_key=KEY, record=False)) as client:
        yield client.until_ready()


def paths(store: Store) -> list[tuple[str, str]]:
    """Every method and path that the application knows, documentation included."""
    app = api(Service(store, Options()))
    described = [(method.upper(), path) for path, each in app.openapi()["paths"].items() for method in each]
    return [*described, ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/docs/oauth2-redirect"), ("GET", "/nope")]


# Keys


def as_header(text: str) -> str:
    """How a header carries a text that is not ASCII: its bytes, as urllib sends them."""
    return text.encode().decode("latin-1")


@pytest.mark.slow
def test_every_route_but_health_asks_for_the_key(locked: Client, harbour_store: Store) -> None:
    asked = {path: locked(method, path.replace("{topic_id}", "yard")) for method, path in paths(harbour_store)}
    assert len(asked) >= 12
    for path, response in asked.items():
        if path in OPEN_PATHS:
            assert response.status == 200
        else:
            assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer"), path
            assert response.document["type"] == "urn:memstate:problem:unauthorized"


@pytest.mark.parametrize("path", ["//v1/runs", "/healthz/../v1/runs", "/HEALTHZ", "/healthz/", "/%68ealthz2"])
def test_no_spelling_of_a_path_gets_around_the_key(locked: Client, path: str) -> None:
    assert locked.get(path).status == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_API_Key": as_header(KEY)}, 200),
        ({"Authorization": f"Bearer {as_header(KEY)}"}, 200),
        ({"Authorization": f"bearer {as_header(KEY)}"}, 200),
        ({"X_API_Key": as_header(KEY) + "x"}, 401),
        ({"X_API_Key": as_header(KEY)[:-1]}, 401),
        ({"X_API_Key": ""}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Basic {as_header(KEY)}"}, 401),
    ],
)
def test_the_key_is_shown_in_one_of_two_ways(locked: Client, headers: dict[str, str], status: int) -> None:
    assert locked.get("/v1/runs", **headers).status == status


def test_a_key_makes_any_name_of_the_host_good(locked: Client) -> None:
    assert locked.get("/v1/runs", Host="memory.example", X_API_Key=as_header(KEY)).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8420", 200),
        ("[::1]:8420", 200),
        ("a.example", 403),
        ("127.0.0.1.b.com", 403),
        ("localhost:80@evil.com", 403),
        ("[::1]evil.com", 403),
        ("[::1]:80@evil.com", 403),
        ("localhost:", 403),
        ("localhost,evil.com", 403),
        ("evil.com#localhost", 403),
    ],
)
def test_without_a_key_only_names_of_this_machine_are_answered(client: Client, host: str, status: int) -> None:
    assert client.get("/v1/runs", Host=host).status == status


def test_a_blank_key_is_no_key() -> None:
    assert api_key({"MEMSTATE_API_KEY": "  "}) is None
    assert api_key({"MEMSTATE_API_KEY": " k "}) == "k"
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "", "a.b")] == [
        True, True, True, False, False, False, False
    ]  # fmt: skip


# Problems


def test_every_error_of_memstate_has_a_status() -> None:
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MemstateError)}
    assert kinds - STATUS.keys() == {MemstateError}


@pytest.mark.parametrize("error", [error for error, _, _ in EXAMPLES])
def test_every_error_of_memstate_becomes_a_problem(error: MemstateError) -> None:
    problem = problem_of(error)
    assert 400 <= problem.status < 600
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", problem.kind)
    assert problem.detail == error.message


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/nope", 404, "not-found"),
        ("GET", "/v1/runs/", 404, "not-found"),
        ("DELETE", "/v1/runs", 405, "method-not-allowed"),
        ("GET", "/v1/runs?limit=x", 422, "invalid-request"),
        ("GET", "/v1/topics/nobody", 404, "topic-not-found"),
    ],
)
def test_errors_are_problem_documents(client: Client, method: str, path: str, status: int, kind: str) -> None:
    response = client(method, path, X_Request_Id="abc.1")
    assert (response.status, response.headers["content-type"]) == (status, "application/problem+json")
    assert response.document["type"] == f"urn:memstate:problem:{kind}"
    assert (response.document["status"], response.document["request_id"]) == (status, "abc.1")
    assert response.document["title"]
    assert response.document["detail"]
    if status == 405:
        assert response.headers["allow"] == "GET"


def test_an_unexpected_error_reveals_no_internals(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("the inside")

    monkeypatch.setattr(Service, "runs", broken)
    response = client.get("/v1/runs", X_Request_Id="abc.2")
    assert (response.status, response.document["request_id"]) == (500, "abc.2")
    assert response.headers["x-request-id"] == "abc.2"
    assert b"inside" not in response.content


# Bodies


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 422, "invalid-request"),
        (b"\xff", 422, "invalid-request"),
        (b'{"q": "' + b"x" * (1 << 20) + b'"}', 413, "content-too-large"),
        (b"x" * (10 << 20), 413, "content-too-large"),
        (b"[" * 100_000 + b"]" * 100_000, 400, "too-deep"),
        (b'{"q": ' + b"[" * 102 + b"]" * 102 + b"}", 400, "too-deep"),
        (b'{"q": "' + b"[" * 500 + b'"}', 200, None),
        (b'{"q": "\\"' + b"[" * 500 + b'"}', 200, None),
    ],
)
def test_bodies_have_limits(client: Client, body: bytes, status: int, kind: str | None) -> None:
    response = client.post("/v1/query", body)
    assert response.status == status, response.content
    if kind is not None:
        assert response.document["type"] == f"urn:memstate:problem:{kind}"


def test_a_body_without_length_is_counted_as_it_comes(client: Client) -> None:
    connection = http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=30)
    chunks = iter([b"x" * (1 << 19)] * 3)
    connection.request("POST", "/v1/query", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_far_beyond_the_limit_is_not_read(client: Client) -> None:
    connection = http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=30)
    connection.putrequest("POST", "/v1/query")
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_that_does_not_arrive_is_given_up(harbour_store: Store) -> None:
    with served(harbour_store, Options(body_seconds=0.2)) as client:
        connection = http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=30)
        connection.putrequest("POST", "/v1/query")
        connection.putheader("Content-Length", "10")
        connection.endheaders(b"{")
        assert connection.getresponse().status == 408
        connection.close()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
@pytest.mark.parametrize("path", ["/v1/ingest", "/v1/query", "/v1/feedback"])
def test_a_body_is_declared_as_json(client: Client, path: str, kind: str) -> None:
    response = client.post(path, {"q": "x", "text": "x"}, Content_Type=kind)
    assert response.status in (415, 422)


# Request ids and the log


@pytest.mark.parametrize(("given", "kept"), [("job-7:a.b_c", True), ("a b", False), ("x" * 129, False), ("é", False)])
def test_a_plain_request_id_is_kept(client: Client, given: str, kept: bool) -> None:
    response = client.get("/healthz", X_Request_Id=given).headers["x-request-id"]
    assert (response == given) is kept
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", response)


def test_the_log_names_requests_and_keeps_secrets(locked: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memstate.access")
    body = {"q": "my deepest secret", "scope": "user:a"}
    refused = {"q": 1, "my deepest secret": "my deepest secret"}
    locked.post("/v1/query?token=hidden", body, X_API_Key=as_header(KEY), X_Request_Id="answered")
    locked.post("/v1/query", refused, X_API_Key=as_header(KEY), X_Request_Id="refused")
    lines = logged(caplog, {"answered", "refused"})
    answered = json.loads(lines["answered"])
    assert answered.pop("ms") > 0
    assert answered | {"time": ""} == {
        "time": "", "level": "info", "logger": "memstate.access", "message": "request", "request_id": "answered",
        "method": "POST", "path": "/v1/query", "caller": "owner", "status": 200,
    }  # fmt: skip
    assert not [line for line in lines.values() for secret in ("secret", KEY, "hidden") if secret in line]


def logged(caplog: pytest.LogCaptureFixture, ids: set[str]) -> dict[str, str]:
    """The lines of requests by their ids; a server logs a request after its response, so lines may come late."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        lines = [JsonLines().format(record) for record in list(caplog.records) if record.name == "memstate.access"]
        by_id = {json.loads(line)["request_id"]: line for line in lines}
        if ids <= by_id.keys():
            return {each: by_id[each] for each in ids}
        time.sleep(0.01)
    pytest.fail(f"of {ids}, only {by_id.keys()} were logged")


def test_a_store_without_snapshot_is_not_ready(tmp_path: Path, harbour_store: Store) -> None:
    empty = Store(type(harbour_store.home)(tmp_path / "home"), harbour_store.settings)
    with served(empty, Options()) as client:
        assert client.get("/healthz").status == 200
        for response in (client.get("/readyz"), client.post("/v1/query", {"q": "x"}), client.get("/v1/topics")):
            assert (response.status, response.headers["retry-after"]) == (503, "1")
            assert response.document["type"] == "urn:memstate:problem:store-not-found"
        assert client.get("/v1/runs").document == {"runs": []}
