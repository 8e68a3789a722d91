"""An id of another scope costs the reads of an id that nobody has, so time does not distinguish them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from memstate_core.state.graph import Graph
from tests.core.serve.scopes.two_scopes import (
    ASKED,
    FOREIGN,
    GHOST,
    OBSERVED,
    Caller,
    Request,
)

pytestmark = pytest.mark.slow


def test_a_foreign_id_is_filtered_before_its_row_is_read(
    caller: Caller, owner: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the row first made foreign ids distinguishable from unknown ones by their time."""
    read, heights = Graph.read, list[int]()

    def counted(graph: Graph, *args: Any, **named: Any) -> pl.DataFrame:
        rows = read(graph, *args, **named)
        heights.append(rows.height)
        return rows

    monkeypatch.setattr(Graph, "read", counted)
    for name in (f"{FOREIGN}-topic", f"{FOREIGN}-merged", f"{GHOST}-topic"):
        assert caller("GET", f"/v1/topics/{name}").status == 404
        assert caller("POST", "/v1/feedback", {"topic_id": name, "used": True}).status in (403, 404)
        assert caller("POST", "/v1/ingest", OBSERVED | {"topic_id": name}).status in (403, 422)
        assert sum(heights) == 0
    assert owner("GET", f"/v1/topics/{FOREIGN}-topic").status == 200
    assert sum(heights) > 0


NAMING: list[Request] = [
    ("GET", "/v1/topics/NAME", None),
    ("GET", "/v1/topics/NAME?as_of=2026-06-01", None),
    ("GET", "/v1/topics/NAME/history", None),
    ("POST", "/v1/query", {"q": ASKED, "topic_ids": ["NAME"]}),
    ("POST", "/v1/query", {"q": ASKED, "topic_ids": ["NAME"], "as_of": "2026-06-01"}),
    ("POST", "/v1/feedback", {"topic_id": "NAME", "used": True}),
    ("POST", "/v1/ingest", OBSERVED | {"topic_id": "NAME"}),
]


@pytest.mark.parametrize(("method", "path", "body"), NAMING, ids=[f"{each[0]} {each[1]}" for each in NAMING])
def test_a_foreign_id_costs_the_reads_of_an_unknown_one(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    """The same reads of the graph with as many rows, whose time a caller could measure."""
    read, made = Graph.read, list[tuple[str, int]]()

    def noted(graph: Graph, *args: Any, **named: Any) -> pl.DataFrame:
        rows = read(graph, *args, **named)
        made.append((repr((args, named)), rows.height))
        return rows

    def reads(name: str) -> list[tuple[str, int]]:
        made.clear()
        caller(method, path.replace("NAME", name), json.loads(json.dumps(body).replace("NAME", name)))
        return [(what.replace(name, "NAME"), height) for what, height in made]

    caller(method, path.replace("NAME", f"{GHOST}-first"), json.loads(json.dumps(body).replace("NAME", "first")))
    monkeypatch.setattr(Graph, "read", noted)
    unknown = reads(f"{GHOST}-topic")
    assert reads(f"{FOREIGN}-topic") == unknown
    assert reads(f"{FOREIGN}-merged") == unknown
    assert reads("own") != unknown
