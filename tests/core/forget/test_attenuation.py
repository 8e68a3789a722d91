"""The lower steps of the ladder: what is summarised and detached, and what is reversed automatically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget.attenuation import detached_edges, detached_fields, summaries
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.ladder_state import LadderState, ladder_state

POLICY = Policy(summary_keep_revisions=2)
LONG = 4
"""Revisions of a field that has enough for a summary: two stay, and two become one."""
SCHEMA = {
    "topic_id": pl.String, "scope": pl.String, "action": pl.String, "rule": pl.String, "salience": pl.Float64,
    "theta_summarise": pl.Float64, "theta_detach": pl.Float64,
    **dict.fromkeys(("pinned", "held", "pressure"), pl.Boolean),
}  # fmt: skip
Names = list[tuple[str, ...]]


def topic(topic_id: str = "a", **given: Any) -> dict[str, Any]:
    plain = {"scope": "user:aya", "action": None, "rule": None, "salience": 1.0, "pressure": True}
    limits = {"theta_summarise": 0.2, "theta_detach": 0.1, "pinned": False, "held": False}
    return {"topic_id": topic_id} | plain | limits | given


def topics(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def fields(*rows: tuple[str, str, float, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["topic_id", "name", "salience", "revisions"], orient="row")


def links(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["from_id", "to_id", "kind"], orient="row")


def ladder_of(**given: list[tuple[Any, ...]]) -> LadderState:
    """The ladder state by earlier decisions: `fields`, `edges` and `summaries` as rows."""
    plain = ladder_state(empty(DECISION))
    frames = {
        name: pl.DataFrame(rows, schema=getattr(plain, name).schema, orient="row") for name, rows in given.items()
    }
    return LadderState(**(vars(plain) | frames))


def of_fields(parts: Sequence[pl.DataFrame]) -> tuple[Names, Names]:
    """Rows that take the step, and rows that reverse it."""
    taken, back = (frame.select("topic_id", "name").sort("topic_id", "name").rows() for frame in parts)
    return taken, back


def of_links(parts: Sequence[pl.DataFrame]) -> tuple[Names, Names]:
    taken, back = (frame.select("topic_id", "to_id", "kind").sort(pl.all()).rows() for frame in parts)
    return taken, back


# Fields


def test_fields_below_the_threshold_are_detached_under_pressure_and_at_the_threshold_they_stay() -> None:
    known = fields(("a", "low", 0.099, 1), ("a", "edge", 0.1, 1), ("calm", "low", 0.0, 1))
    where = topics(topic(), topic("calm", pressure=False))
    assert of_fields(detached_fields(known, where, ladder_of())) == ([("a", "low")], [])


@pytest.mark.parametrize("exempt", [{"pinned": True}, {"held": True}, {"action": "pin", "rule": "r"}])
def test_what_is_pinned_held_or_governed_by_another_rule_is_left_alone(exempt: dict[str, Any]) -> None:
    where, known = topics(topic(**exempt)), fields(("a", "x", 0.0, LONG))
    assert of_fields(detached_fields(known, where, ladder_of())) == ([], [])
    assert of_fields(summaries(known, where, ladder_of(), POLICY)) == ([], [])


def test_a_rule_detaches_and_summarises_without_pressure_and_whatever_the_salience() -> None:
    known = fields(("a", "x", 9.0, LONG))
    ruled: dict[str, Any] = {"pressure": False, "rule": "chatter"}
    found = detached_fields(known, topics(topic(action="detach", **ruled)), ladder_of())
    assert of_fields(found) == ([("a", "x")], [])
    assert found[0]["reason"].item() == "rule chatter asks for it"
    short = summaries(known, topics(topic(action="summarise", **ruled)), ladder_of(), POLICY)
    assert of_fields(short) == ([("a", "x")], [])
    assert of_fields(summaries(known, topics(topic(action="detach", **ruled)), ladder_of(), POLICY)) == ([], [])


def test_what_rises_again_comes_back_and_what_is_still_low_does_not_even_without_pressure() -> None:
    known = fields(("a", "up", 0.1, 1), ("a", "down", 0.05, 1))
    where = ladder_of(fields=[("a", "up"), ("a", "down"), ("a", "gone")])
    for pressure in (True, False):
        found = detached_fields(known, topics(topic(pressure=pressure)), where)
        assert of_fields(found) == ([], [("a", "up")])
        assert found[1]["reason"].item() == "salience 0.1 is not below 0.1 any more"


def test_what_is_pinned_comes_back_however_low() -> None:
    known, where = fields(("a", "x", 0.0, LONG)), topics(topic(pinned=True))
    assert of_fields(detached_fields(known, where, ladder_of(fields=[("a", "x")]))) == ([], [("a", "x")])
    assert of_fields(summaries(known, where, ladder_of(summaries=[("a", "x", 2)]), POLICY))[0] == []


# Summaries


def test_only_histories_longer_than_what_is_kept_and_a_summary_are_summarised() -> None:
    known = fields(*[("a", f"n{count}", 0.1, count) for count in range(1, 6)])
    assert of_fields(summaries(known, topics(topic()), ladder_of(), POLICY)) == ([("a", "n4"), ("a", "n5")], [])


def test_summarising_needs_no_pressure_but_a_salience_below_its_threshold() -> None:
    known = fields(("a", "low", 0.199, LONG), ("a", "edge", 0.2, LONG))
    assert of_fields(summaries(known, topics(topic(pressure=False)), ladder_of(), POLICY)) == ([("a", "low")], [])


def test_a_history_that_rises_again_is_expanded_and_one_that_stays_low_stays_short() -> None:
    known = fields(("a", "up", 0.2, LONG), ("a", "down", 0.1, LONG))
    where = ladder_of(summaries=[("a", "up", 2), ("a", "down", 2)])
    assert of_fields(summaries(known, topics(topic()), where, POLICY)) == ([], [("a", "up")])


# Edges


def test_an_edge_is_as_salient_as_the_less_salient_of_its_topics() -> None:
    known = links(("a", "b", "mentions"), ("b", "a", "mentions"), ("a", "c", "mentions"))
    where = topics(topic("a"), topic("b", salience=0.05), topic("c"))
    taken, back = detached_edges(known, where, ladder_of())
    assert of_links((taken, back)) == ([("a", "b", "mentions"), ("b", "a", "mentions")], [])
    assert set(taken["salience"]) == {0.05}


@pytest.mark.parametrize("kind", ["part_of", "has_detail", "extends", "derives", "has_subtopic"])
def test_extension_edges_are_never_detached(kind: str) -> None:
    ruled = topic("a", salience=0.0, action="detach", rule="r")
    found = detached_edges(links(("a", "b", kind)), topics(ruled, topic("b", salience=0.0)), ladder_of())
    assert of_links(found) == ([], [])


@pytest.mark.parametrize("mark", ["pinned", "held"])
def test_an_edge_of_a_pinned_or_held_topic_stays(mark: str) -> None:
    for marked in ("a", "b"):
        where = topics(*[topic(name, salience=0.0, **{mark: name == marked}) for name in "ab"])
        assert of_links(detached_edges(links(("a", "b", "mentions")), where, ladder_of())) == ([], [])


def test_an_edge_is_attached_when_both_of_its_topics_are_salient_again() -> None:
    detached = ladder_of(edges=[("a", "b", "mentions")])
    for salience, back in ((0.1, [("a", "b", "mentions")]), (0.09, [])):
        where = topics(topic("a"), topic("b", salience=salience))
        assert of_links(detached_edges(links(("a", "b", "mentions")), where, detached)) == ([], back)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.floats(0, 1)), max_size=8))
def test_taking_the_steps_and_looking_again_changes_nothing(rows: list[tuple[str, str, float]]) -> None:
    known = fields(*[(*key, salience, LONG) for key, salience in {row[:2]: row[2] for row in rows}.items()])
    known = known if rows else pl.DataFrame(schema=known.schema | {"topic_id": pl.String, "name": pl.String})
    where = topics(*[topic(name) for name in "abc"])
    taken, _ = of_fields(detached_fields(known, where, ladder_of()))
    assert of_fields(detached_fields(known, where, ladder_of(fields=taken))) == ([], [])
    short, _ = of_fields(summaries(known, where, ladder_of(), POLICY))
    kept = [(*slot, 2) for slot in short]
    assert of_fields(summaries(known, where, ladder_of(summaries=kept), POLICY)) == ([], [])
