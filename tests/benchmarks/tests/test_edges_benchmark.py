"""The made store's questions want the topic at the other end of an edge, and the measure can fail."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def edges(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("edges")


def test_each_question_wants_the_topic_to_which_the_edge_of_the_named_one_leads(
    edges: ModuleType, tmp_path: Path
) -> None:
    wanted = edges.made(tmp_path, 40, 1)
    rows = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    linked = [row for row in rows if row["edges"]]
    assert len(wanted) == len(linked) > 30
    assert len({row["title"] for row in rows}) == 40
    for question, row in zip(wanted, linked, strict=True):
        (edge,) = row["edges"]
        assert row["title"] in question.text
        assert question.observations == {edge["to_topic_key"].replace("t", "o")}
        assert question.text == edges.RELATIONS[edge["kind"]].replace("<title>", row["title"])


def test_shares_of_wanted_topics(edges: ModuleType) -> None:
    assert edges.shares(["a", "b", "c", "d"], {"b", "x"}) == [0.0, 0.5, 0.5, 0.5]
    assert edges.shares(["a"], set()) == []
