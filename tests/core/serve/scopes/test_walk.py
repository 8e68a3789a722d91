"""A key sees its scopes only: every route is walked with a key of one scope, over a store that holds another.

Everything of the other scope carries one word, and each request that names something of it is sent again with a
word that nothing carries. The word must not come back, and the two answers must be the same but for the word.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from memstate_core.model.ids import uuid_text
from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store
from memstate_core.serve.app import api
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service
from memstate_core.state.home import Home
from tests.core.serve.conftest import Client, served
from tests.core.serve.scopes.two_scopes import (
    ASKED,
    FOREIGN,
    GHOST,
    MINE,
    OBSERVED,
    Caller,
    Request,
    key_for,
)

pytestmark = pytest.mark.slow

_SCOPES: list[Any] = ["user:{}", {"type": "user", "id": "{}"}, ["user:{}", MINE], [MINE]]
_BODIES: list[dict[str, Any]] = [
    {"q": ASKED, "explain": True, "top_k": 100, "evidence_k": 100},
    {"q": ASKED, "as_of": "2026-05-30"},
    {"q": ASKED, "as_of": "2026-01-10", "explain": True},
    {"q": ASKED, "stages": ["structural", "temporal"]},
    *({"q": ASKED, "scope": scope} for scope in _SCOPES),
    *({"q": ASKED, "topic_ids": [name]} for name in ("own", "{}-topic", "{}-merged", "{}-alias", "{}-archived")),
    {"q": ASKED, "topic_ids": ["own", "{}-topic"], "scope": MINE},
    {"q": ASKED, "topic_ids": ["{}-observation"], "as_of": "2026-05-30"},
    {"q": ASKED, "field_names": ["{}_field", "visitor"]},
    *({"q": ASKED, "pending": True, "scope": scope} for scope in (*_SCOPES, None)),
    *({"q": ASKED, "pending": True, "topic_ids": [name]} for name in ("own", "{}-topic", "{}-merged", "{}-alias")),
]
_PACKS = [
    *({"q": ASKED, "budget": 4000, "scope": scope} for scope in (*_SCOPES, None)),
    {"q": ASKED, "budget": 4000, "as_of": "2026-01-10"},
]


def cursors(word: str) -> list[str]:
    found = [[f"user:{word}", f"{word}-topic"], [f"user:{word}", ""], [MINE, f"{word}-topic"], ["user:", ""]]
    return [urlsafe_b64encode(json.dumps(each).encode()).decode() for each in found]


def listing(word: str) -> list[Request]:
    asked = ["", "limit=1", f"scope=user:{word}", f"scope=user:{word}&scope={MINE}", f"scope={MINE}"]
    forged = [f"cursor={quote(cursor)}{more}" for cursor in cursors(word) for more in ("", f"&scope=user:{word}")]
    return [("GET", f"/v1/topics?{each}", None) for each in asked + forged]


def facts(word: str) -> list[Request]:
    named = ["own", "own-alias", f"{word}-topic", f"{word}-merged", f"{word}-alias", f"{word}-archived", word]
    asked = ["", "history=true", "as_of=2026-05-30", "as_of=2026-01-10", "limit=1", f"predicate={word}_field"]
    asked += [f"scope=user:{word}", f"scope=user:{word}&scope={MINE}", f"scope={MINE}"]
    asked += [f"subject={name}{more}" for name in named for more in ("", "&history=true", "&as_of=2026-05-30")]
    last = [[f"user:{word}", f"{word}-topic", "", 0], [MINE, f"{word}-topic", f"{word}_field", 1]]
    asked += [f"cursor={quote(urlsafe_b64encode(json.dumps(each).encode()).decode())}" for each in last]
    return [("GET", f"/v1/facts?{each}", None) for each in asked]


def resources(word: str) -> list[Request]:
    asked = ["", "roots=true", "content=true", "limit=1", f"scope=user:{word}", f"scope=user:{word}&scope={MINE}"]
    asked += ["as_of=2026-05-30&content=true", "as_of=2026-01-10", f"as_of=2026-05-30&scope=user:{word}"]
    asked += [f"{name}={word}:/{more}" for name in ("uri", "parent") for more in ("", "&content=true")]
    asked += [f"uri={word}:/&as_of=2026-05-30&content=true"]
    last = [[f"user:{word}", f"{word}:/"], [MINE, f"{word}:/"]]
    asked += [f"cursor={quote(urlsafe_b64encode(json.dumps(each).encode()).decode())}" for each in last]
    return [("GET", f"/v1/resources?{each}", None) for each in asked]


def topic_paths(word: str, after: str) -> list[Request]:
    names = ["own", "beside", "lost", "own-alias", *(f"{word}-{kind}" for kind in ("topic", "merged", "alias"))]
    names += [f"{word}-archived", f"{word}-observation", f"user:{word}", word]
    asked = ["", "?as_of=2026-05-30", "?as_of=2026-01-10", "?as_of=2020-01-01"]
    asked += ["?expand=true"] if after else ["?pending=true", "?pending=true&as_of=2026-05-30"]
    return [("GET", f"/v1/topics/{name}{after}{each}", None) for name in names for each in asked]


def posts(path: str, bodies: list[Any]) -> Callable[[str], list[Request]]:
    def requests(word: str) -> list[Request]:
        return [("POST", path, json.loads(json.dumps(body).replace("{}", word))) for body in bodies]

    return requests


FEEDBACK = [
    {"topic_id": "{}-topic", "used": True},
    {"topic_id": "{}-merged", "used": True},
    {"topic_id": "lost", "used": True},
    {"topic_id": "{}-topic", "failed": True, "fields": ["{}_field"]},
    {"topic_id": "own", "used": True, "fields": ["{}_field"]},
    {"topic_id": "own", "used": True, "at": "2026-05-01"},
]
INGESTED = [
    {"text": "A {}.", "scope": {"type": "user", "id": "{}"}},
    [OBSERVED, {"text": "A {}.", "scope": {"type": "user", "id": "{}"}}],
    OBSERVED | {"topic_id": "{}-topic", "title": "Mine now"},
    OBSERVED | {"topic_id": "{}-topic", "title": "Mine before", "observed_at": "1970-01-01T00:00:00Z"},
    OBSERVED | {"topic_id": "{}-archived"},
    OBSERVED | {"observation_id": "{}-observation"},
    OBSERVED
    | {"observation_id": "tie-{}", "edges": [{"to_topic_id": "{}-topic", "kind": "part_of"}], "topic_key": "otter"},
    OBSERVED
    | {
        "observation_id": "reference-{}",
        "fields": [{"name": "seen", "value": "x", "ref_topic_id": "{}-topic"}],
        "topic_key": "otter",
    },
]
PROBES: dict[tuple[str, str], Callable[[str], list[Request]]] = {
    ("get", "/healthz"): lambda _: [("GET", "/healthz", None)],
    ("get", "/readyz"): lambda _: [("GET", "/readyz", None)],
    ("get", "/health"): lambda _: [("GET", "/health", None)],
    ("get", "/health/graph"): lambda _: [("GET", "/health/graph", None)],
    ("get", "/metrics"): lambda _: [("GET", "/metrics", None)],
    ("get", "/v1/reports/{page}"): lambda _: [("GET", f"/v1/reports/{name}.html", None) for name in ("index", "none")],
    ("get", "/v1/runs"): lambda _: [("GET", "/v1/runs", None), ("GET", "/v1/runs?limit=1", None)],
    ("get", "/v1/topics"): listing,
    ("get", "/v1/facts"): facts,
    ("get", "/v1/resources"): resources,
    ("get", "/v1/topics/{topic_id}"): lambda word: topic_paths(word, ""),
    ("get", "/v1/topics/{topic_id}/history"): lambda word: topic_paths(word, "/history"),
    ("post", "/v1/query"): posts("/v1/query", _BODIES),
    ("post", "/v1/context"): posts("/v1/context", _PACKS),
    ("post", "/v1/feedback"): posts("/v1/feedback", FEEDBACK),
    ("post", "/v1/ingest"): posts("/v1/ingest", INGESTED),
}
"""For each route what is asked of it. A route that is not here fails the test, so that nobody forgets it."""


def routes(store: Store) -> set[tuple[str, str]]:
    described = api(Service(store, Options())).openapi()["paths"]
    return {(method, path) for path, each in described.items() for method in each}


def same(content: bytes) -> bytes:
    """An answer without what differs from request to request, and without ids that follow from all that was sent."""
    if not content.startswith(b"{"):
        return content
    return json.dumps({**json.loads(content), "file": "", "request_id": "", "version_ids": None}).encode()


def test_every_route_is_walked(store: Store) -> None:
    assert routes(store) == PROBES.keys()


def test_the_other_scope_is_there_to_be_found(owner: Caller) -> None:
    response = [owner(*request).content.decode() for request in listing("x") + posts("/v1/query", _BODIES)("x")]
    assert sum(FOREIGN in each for each in response) > len(response) // 3
    assert owner("GET", f"/v1/topics/{FOREIGN}-topic").status == 200
    assert owner("GET", "/v1/topics/own").document["fields"]["rumour"]["ref_topic_id"] == f"{FOREIGN}-topic"


def test_the_objects_of_the_other_scope_are_there_to_be_found(owner: Caller) -> None:
    assert FOREIGN in json.dumps(owner("GET", "/v1/resources?content=true").document)
    pack = owner("POST", "/v1/context", {"q": ASKED, "budget": 4000, "scope": f"user:{FOREIGN}"}).document["text"]
    assert f"The {FOREIGN} drinks at the river." in pack
    assert f"Find the {FOREIGN}" in pack


@pytest.mark.parametrize("route", PROBES, ids=" ".join)
def test_nothing_of_another_scope_comes_back(caller: Caller, route: tuple[str, str]) -> None:
    for (method, path, body), (_, ghostly, ghost) in zip(PROBES[route](FOREIGN), PROBES[route](GHOST), strict=True):
        response, expected = caller(method, path, body), caller(method, ghostly, ghost)
        assert response.status == expected.status, (path, body, response.content)
        assert same(response.content).replace(FOREIGN.encode(), GHOST.encode()) == same(expected.content), (path, body)
        if FOREIGN not in path and FOREIGN not in json.dumps(body):
            assert FOREIGN.encode() not in response.content, (path, body)
        assert FOREIGN not in json.dumps(str(response.headers)) or FOREIGN in path


def test_a_question_with_its_own_term_finds_nothing_of_it(caller: Caller) -> None:
    response = caller("POST", "/v1/query", {"q": f"{FOREIGN} herd", "explain": True, "evidence_k": 100}).document
    assert response.pop("query") == f"{FOREIGN} herd"
    assert FOREIGN not in json.dumps(response)
    assert {each["scope"] for each in response["candidates"]} == {MINE}


def test_ties_within_the_scope_are_kept(caller: Caller) -> None:
    response = caller("GET", "/v1/topics/own").document
    assert [{edge["from"], edge["to"]} for edge in response["edges"]] == [{"own", "beside"}]
    candidates = caller("POST", "/v1/query", {"q": ASKED, "topic_ids": ["own"]}).document["candidates"]
    assert [neighbor["topic_id"] for neighbor in candidates[0]["neighbors"]] == ["beside"]
    if "keeper" in response["fields"]:
        assert response["fields"]["keeper"]["ref_topic_id"] == "beside"


def test_what_reaches_over_and_what_leads_nowhere_look_the_same(caller: Caller) -> None:
    response = caller("GET", "/v1/topics/own").document
    references = {name: field["ref_topic_id"] for name, field in response["fields"].items() if name != "keeper"}
    assert set(references.values()) == {None}
    assert {warning["related_topic_id"] for warning in response["warnings"]} <= {None}
    assert (response["merged_into"], response["stale"]) == (None, None)


def test_counts_of_the_whole_store_are_for_who_sees_it(
    caller: Caller, owner: Caller, client: Client, store: Store
) -> None:
    has_reports = (store.home.reports / "index.html").exists()
    for path in ("/v1/runs", "/v1/reports/index.html", "/metrics"):
        response = caller("GET", path)
        assert (response.status, response.document["type"]) == (403, "urn:memstate:problem:not-allowed")
        assert owner("GET", path).status == (200 if has_reports or "reports" not in path else 404)
    open_to_all = client.get("/readyz").document
    assert set(open_to_all) <= {"status", "stale"}
    assert set(caller("GET", "/readyz").document) <= {"status", "stale"}
    assert owner("GET", "/readyz").document["snapshot"].startswith("s0/")


def test_nothing_is_written_into_another_scope(caller: Caller, store: Store) -> None:
    before = sorted(path.name for path in store.home.inbox.glob("*.jsonl"))
    response = caller("POST", "/v1/ingest", [OBSERVED, {"text": "x", "scope": {"type": "user", "id": FOREIGN}}])
    assert (response.status, response.document["type"]) == (403, "urn:memstate:problem:not-allowed")
    assert response.document["found"] == f"observation 1 of scope user:{FOREIGN}"
    assert caller("POST", "/v1/ingest", {"text": "of no scope"}).document["found"].endswith("of scope global:global")
    assert sorted(path.name for path in store.home.inbox.glob("*.jsonl")) == before


def test_a_key_of_one_scope_takes_no_id_of_another(caller: Caller, owner: Caller) -> None:
    """The scope that uses an id first, by the time of observations, owns it: an early date would take it over."""
    early = OBSERVED | {"observed_at": "1970-01-01T00:00:00Z", "title": "Mine"}
    for name in (f"{FOREIGN}-topic", "no-topic-yet"):
        response = caller("POST", "/v1/ingest", early | {"topic_id": name})
        assert response.status == 422
        assert response.document["errors"][0]["detail"].endswith("`topic_key` names a new one")
    future = uuid_text("key", f"user:{FOREIGN}", "a key that they will use")
    of_title = uuid_text("title", f"user:{FOREIGN}", "", "a title that they will use")
    for name in (future, of_title, uuid_text("observation", f"user:{FOREIGN}", "o"), uuid_text("key", MINE, "unused")):
        response = caller("POST", "/v1/ingest", [early, early | {"topic_id": name}])
        assert (response.status, [each["at"] for each in response.document["errors"]]) == (422, [1])
    answered = caller("POST", "/v1/ingest", [early | {"topic_id": "own"}, early | {"topic_key": "otter"}])
    assert answered.status == 202
    made = answered.document["topic_ids"][1]
    assert caller("POST", "/v1/ingest", early | {"topic_id": made}).status == 202
    assert owner("POST", "/v1/ingest", early | {"topic_id": "no-topic-yet"}).status == 202
    both = [early | {"topic_key": "stoat"}, early | {"topic_id": uuid_text("key", MINE, "stoat")}]
    assert caller("POST", "/v1/ingest", both).status == 202, "made by an observation of the same request"


def test_before_the_first_snapshot_an_id_is_known_by_what_makes_it(tmp_path: Path) -> None:
    store = Store(Home(tmp_path / "home"), Settings())
    token = key_for(store, "early", "write", [MINE], 7)
    said = {"scope": {"type": "user", "id": "mine"}, "title": "Mine"}
    with served(store, Options()) as client:
        who = Caller(client, token)
        made = who("POST", "/v1/ingest", said | {"topic_key": "otter"}).document["topic_id"]
        assert who("POST", "/v1/ingest", said | {"topic_id": made}).status == 202
        unmade = uuid_text("key", MINE, "stoat")
        assert who("POST", "/v1/ingest", said | {"topic_id": unmade}).status == 422


@pytest.mark.parametrize(
    ("role", "expected"),
    [("read", (200, 403, 403, 403)), ("write", (200, 202, 202, 403)), ("admin", (200, 202, 202, 200))],
)
def test_a_role_may_do_what_it_is_for(
    client: Client, tokens: dict[str, str], role: str, expected: tuple[int, ...]
) -> None:
    who = Caller(client, tokens[role])
    response = (
        who("POST", "/v1/query", {"q": ASKED}),
        who("POST", "/v1/ingest", OBSERVED),
        who("POST", "/v1/feedback", {"topic_id": "own", "used": True}),
        who("GET", "/metrics"),
    )
    assert tuple(each.status for each in response) == expected
