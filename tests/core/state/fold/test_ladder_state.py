"""The ladder state by recorded decisions: the last one is in force, and a reversed step leaves no trace."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from tests.core.frames import filled

Decision = tuple[str, str, dict[str, Any]]
"""Kind, topic and payload of a decision."""

STEPS = {"archived": "restored", "detached": "attached", "summarised": "expanded", "pinned": "unpinned"}
EDGE = {"to": "b", "kind": "mentions"}
topics = st.sampled_from("ab")
some_fields = st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True)
some_links = st.lists(
    st.builds(lambda to, kind: {"to": to, "kind": kind}, topics, st.sampled_from(("mentions", "cites"))),
    min_size=1,
    max_size=2,
)
decisions = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("archived", "restored", "pinned", "unpinned")), topics, st.just({})),
        st.tuples(st.sampled_from(("detached", "attached")), topics, st.builds(dict, fields=some_fields)),
        st.tuples(st.sampled_from(("detached", "attached")), topics, st.builds(dict, edges=some_links)),
        st.tuples(
            st.sampled_from(("summarised", "expanded")),
            topics,
            st.builds(dict, fields=some_fields, keep=st.sampled_from((2, 20))),
        ),
        st.tuples(st.sampled_from(("merged", "judged", "topic_created")), topics, st.just({"survivor": "b"})),
    ),
    max_size=14,
)


def decided(*decisions: Decision) -> pl.DataFrame:
    rows = [{"kind": kind, "topic_id": topic, "payload_json": json.dumps(said)} for kind, topic, said in decisions]
    return filled(
        pl.DataFrame(rows, schema={"kind": pl.String, "topic_id": pl.String, "payload_json": pl.String}), DECISION
    )


def in_force(found: LadderState) -> dict[str, set[Any]]:
    return {
        "archived": set(found.archived.rows()),
        "pinned": set(found.pins.rows()),
        "detached": set(found.fields.rows()) | set(found.edges.rows()),
        "summarised": set(found.summaries.rows()),
    }


def by_a_plain_loop(decisions: list[Decision]) -> dict[str, set[Any]]:
    last: dict[tuple[str, Any], Any] = {}
    for kind, topic, said in decisions:
        step = next((down for down, up in STEPS.items() if kind in (down, up)), None)
        keys: list[tuple[str, ...]] = [(topic, name) for name in said.get("fields", [])]
        keys += [(topic, link["to"], link["kind"]) for link in said.get("edges", [])]
        for key in keys or [(topic,)]:
            if step is not None:
                last[step, key] = (*key, said["keep"]) if "keep" in said else key
            if step is not None and kind != step:
                del last[step, key]
    return {step: {value for (of, _), value in last.items() if of == step} for step in STEPS}


@given(decisions)
def test_the_last_decision_on_each_topic_field_and_edge_is_in_force(recorded: list[Decision]) -> None:
    assert in_force(ladder_state(decided(*recorded))) == by_a_plain_loop(recorded)


@pytest.mark.slow
@given(decisions, decisions)
def test_a_reversed_step_leaves_no_trace(before: list[Decision], between: list[Decision]) -> None:
    """On items that no other decision names."""
    there: list[Decision] = [("archived", "c", {}), ("detached", "c", {"fields": ["x"]}), ("pinned", "c", {}),
             ("summarised", "c", {"fields": ["x"], "keep": 1}), ("detached", "c", {"edges": [EDGE]})]  # fmt: skip
    back: list[Decision] = [(STEPS[kind], topic, said) for kind, topic, said in there]
    assert in_force(ladder_state(decided(*before, *there, *between, *back))) == by_a_plain_loop([*before, *between])


def test_a_field_and_an_edge_of_one_topic_do_not_affect_each_other() -> None:
    recorded: list[Decision] = [("detached", "a", {"fields": ["x"]}), ("attached", "a", {"edges": [EDGE]})]
    assert in_force(ladder_state(decided(*recorded)))["detached"] == {("a", "x")}


def test_decisions_without_payload_or_of_earlier_versions_count() -> None:
    rows = decided(("archived", "a", {}), ("archived", "b", {"salience": 0.1, "unknown": [1]}))
    assert set(ladder_state(rows.with_columns(payload_json=pl.lit(None, pl.String))).archived["topic_id"]) == {"a", "b"}
    assert set(ladder_state(rows).archived["topic_id"]) == {"a", "b"}


def test_a_manually_restored_topic_is_held_by_the_last_such_decision() -> None:
    recorded: list[Decision] = [
        ("restored", "a", {"actor": "person", "last_event_at": "2026-01-01T00:00:00Z"}),
        ("archived", "a", {}),
        ("restored", "a", {"salience": 0.3, "by": "evidence"}),
        ("attached", "a", {"fields": ["x"], "actor": "person", "last_event_at": "2026-02-01T00:00:00Z"}),
        ("restored", "b", {"by": "access"}),
    ]
    assert ladder_state(decided(*recorded)).held.rows() == [("a", "2026-02-01T00:00:00Z")]


def test_without_decisions_no_step_is_in_force() -> None:
    found = ladder_state(empty(DECISION))
    assert all(frame.is_empty() for frame in vars(found).values())
    assert (
        found.summaries.schema
        == ladder_state(decided(("summarised", "a", {"fields": ["x"], "keep": 2}))).summaries.schema
    )
