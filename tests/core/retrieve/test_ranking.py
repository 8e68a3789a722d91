"""Topics are ranked by score; edges raise neighbours of the best part of the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.retrieve.calibration import Moments
from memstate_core.retrieve.ranking import DAMPING, Ranking
from memstate_core.retrieve.scope_data import TopicSlice
from memstate_core.retrieve.scope_facts import Edge
from memstate_core.retrieve.search import Found


def found(scores: dict[str, float], hidden: str = "", salience: dict[str, float] | None = None) -> Found:
    """The result of one scope with topics of these scores; those in `hidden` may not be returned."""
    ids = list(scores)
    given = salience or {}
    frame = pl.DataFrame(
        {"id": ids, "title": [f"The {each}" for each in ids], "salience": [given.get(each, 1.0) for each in ids]}
    )
    nothing: Any = None
    visible = np.array([each not in hidden for each in ids])
    topics = TopicSlice(frame, nothing, nothing, np.arange(len(ids)))
    values = np.array(list(scores.values()))
    rows = np.zeros(0, dtype=np.intp)
    return Found(topics, visible, values, values, {}, nothing, rows, values[:0], {}, [], Moments(), Moments())


def ranked(ranking: Ranking, count: int = 10) -> list[tuple[str, float]]:
    return [(each.id, each.score) for each in ranking.best(count)]


def test_the_best_of_all_scopes_come_first_and_ties_go_by_id() -> None:
    ranking = Ranking([found({"c": 2.0, "a": 3.0, "d": 1.0}), found({"e": 9.0, "b": 2.0}, hidden="e")])
    assert ranked(ranking, 3) == [("a", 3.0), ("b", 2.0), ("c", 2.0)]
    assert ranked(ranking, 1) == [("a", 3.0)]


def test_only_the_topics_asked_for_are_ranked() -> None:
    ranking = Ranking([found({"a": 3.0, "b": 2.0, "c": 1.0})], only=["c", "b"])
    assert ranked(ranking) == [("b", 2.0), ("c", 1.0)]


def test_a_neighbour_is_boosted_part_of_the_way_and_never_lowered() -> None:
    ranking = Ranking([found({"a": 8.0, "b": 0.0, "c": 6.0, "d": 1.0})])
    edges = [Edge("a", "b", "x"), Edge("c", "b", "x"), Edge("c", "a", "x")]
    ranking.boost([each for each in ranking.best(2) if each.id in "ac"], edges)
    assert ranked(ranking) == [("a", 8.0), ("c", 6 + 2 * DAMPING), ("b", 8 * DAMPING), ("d", 1.0)]
    assert [ranking.gain(each) for each in "abcd"] == [0.0, 8 * DAMPING, 2 * DAMPING, 0.0]


def test_a_boosted_topic_can_displace_a_candidate() -> None:
    ranking = Ranking([found({"a": 8.0, "b": 3.0, "c": 1.0})])
    ranking.boost(ranking.best(2), [Edge("c", "a", "part_of")])
    assert [name for name, _ in ranked(ranking, 2)] == ["a", "c"]


@pytest.mark.parametrize("kind", ["associated_with", "mentions"])
def test_an_edge_without_a_relation_lifts_nobody(kind: str) -> None:
    ranking = Ranking([found({"a": 8.0, "b": 0.0})])
    ranking.boost(ranking.best(1), [Edge("a", "b", kind)])
    assert ranked(ranking) == [("a", 8.0), ("b", 0.0)]


def test_neighbours_are_listed_by_salience_without_those_that_are_hidden_or_the_topic_itself() -> None:
    scores = dict.fromkeys("abcde", 1.0)
    ranking = Ranking([found(scores, hidden="e", salience={"b": 0.5, "c": 2.0, "d": 2.0})])
    edges = [Edge("a", "b", "x"), Edge("d", "a", "x"), Edge("a", "c", "x"), Edge("a", "e", "x"), Edge("a", "a", "x")]
    shown = ranking.neighbors(["a"], edges, 16)["a"]
    assert [(each["topic_id"], each["direction"]) for each in shown] == [("c", "out"), ("d", "in"), ("b", "out")]
    assert shown[0] == {"title": "The c", "kind": "x", "direction": "out", "topic_id": "c"}
    assert len(ranking.neighbors(["a"], edges, 2)["a"]) == 2
