"""Steps on a topic whose id belongs to another scope by now are reversed, and only they."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.fold.foreign_steps import reversed_across_scopes
from memstate_core.state.fold.ladder_state import STEPS, ladder_state
from tests.core.frames import filled
from tests.core.strategies import SCOPES

MINE, THEIRS = SCOPES
HOMES = pl.DataFrame({"topic_id": ["taken", "own"], "scope": [THEIRS, MINE]})
EDGES = [{"to": "b", "kind": "mentions"}, {"to": "a", "kind": "cites"}]
SAID: dict[str, list[dict[str, Any]]] = {
    "archived": [{}],
    "detached": [{"fields": ["y", "x"]}, {"edges": EDGES}],
    "summarised": [{"fields": ["z"], "keep": 2}],
    "pinned": [{}],
}


def decided(scope: str, topic: str, *kinds: str) -> pl.DataFrame:
    rows = [
        {"kind": kind, "scope": scope, "topic_id": topic, "payload_json": json.dumps(said)}
        for kind in kinds
        for said in SAID[kind]
    ]
    return filled(pl.DataFrame(rows), DECISION)


def steps(decisions: pl.DataFrame) -> dict[str, list[Any]]:
    found = ladder_state(decisions)
    parts = {"archived": found.archived, "fields": found.fields, "edges": found.edges, "pins": found.pins}
    return {name: rows.rows() for name, rows in (parts | {"summaries": found.summaries}).items() if rows.height}


@pytest.mark.parametrize("kinds", [*([kind] for kind in STEPS), list(STEPS)])
def test_steps_on_a_topic_of_another_scope_are_reversed_once(kinds: list[str]) -> None:
    before = decided(MINE, "taken", *kinds)
    assert steps(before)
    made = reversed_across_scopes(before, HOMES)
    assert set(made["kind"]) == {STEPS[kind] for kind in kinds}
    assert set(made["scope"]) == {MINE}
    after = pl.concat([before, made])
    assert steps(after) == {}
    assert reversed_across_scopes(after, HOMES).is_empty()
    theirs = pl.concat([after, decided(THEIRS, "taken", *kinds)])
    assert steps(theirs)
    assert reversed_across_scopes(theirs, HOMES).is_empty()


def test_steps_within_a_scope_and_on_topics_without_evidence_stay() -> None:
    own = pl.concat([decided(MINE, "own", *STEPS), decided(THEIRS, "gone", *STEPS), decided(THEIRS, "taken", *STEPS)])
    assert reversed_across_scopes(own, HOMES).is_empty()
    assert reversed_across_scopes(own.clear(), HOMES).schema == pl.Schema(DECISION)
