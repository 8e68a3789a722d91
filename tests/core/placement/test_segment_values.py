"""What a segment of turns states about its topic: values and edges reach the graph with its provenance and evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, PLACEMENTS, SEGMENTS
from memstate_core.night.checks.provenance import provenance
from memstate_core.night.checks.query_soundness import query_soundness
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.decisions import segment_decisions, segments
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.graph import open_graph
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of
from tests.core.reference import World
from tests.core.state.fold.test_fold_properties import canonical
from tests.core.strategies import (
    BUFFER_MIB,
    SCOPES,
    day,
    evidence_frame,
    field,
    fill,
    merge_decisions,
    observation,
)


def segment(topic: str, evidence: list[str], **said: Any) -> dict[str, Any]:
    """One segment (columns SEGMENTS) of the first day."""
    own = {"topic_id": topic, "scope": SCOPES[0], "evidence_ids": evidence, "session_id": "s", "participants": ["Aya"]}
    return {**own, "began_at": day(0), "ended_at": day(1), "title": topic, "summary": f"About {topic}"} | said


def assertion(name: str, value_json: str, **said: Any) -> dict[str, Any]:
    return {"impact_expected": None} | field(name, value_json, **said)


def decided(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = {name: SEGMENTS[name] for name in SEGMENTS if any(name in row for row in rows)}
    return segment_decisions(filled(pl.DataFrame(rows, schema=schema), SEGMENTS))


def state_of(*rows: dict[str, Any], after: pl.DataFrame | None = None) -> State:
    """The fold of segments and later decisions."""
    spoken = sorted(name for row in rows for name in row["evidence_ids"])
    evidence = evidence_frame([observation(int(name[1:])) for name in spoken])
    placed = [
        {"evidence_id": name, "scope": row["scope"], "topic_id": row["topic_id"]}
        for row in rows
        for name in row["evidence_ids"]
    ]
    placements = filled(pl.DataFrame(placed), PLACEMENTS)
    decisions = pl.concat([decided(*rows), *([] if after is None else [after])])
    return fold(evidence, placements, empty(ALIASES), decisions, Policy())


def values(state: State, name: str) -> list[tuple[Any, ...]]:
    rows = state.revisions.filter(pl.col("name") == name).sort("topic_id", "rank")
    return list(rows.select("topic_id", "value_json", "provenance", "valid_from", "evidence_ids").iter_rows())


PETS = segment(
    "pets",
    ["e01", "e02"],
    provenance="llm",
    fields=[
        assertion("pet", '"Rex"', confidence=0.9),
        assertion("pet", '"Tom"', valid_from=day(3)),
        assertion("owner", '"Aya"'),
    ],
    links=[{"kind": "mentions", "to_topic_id": "trip"}],
)
TRIP = segment("trip", ["e03"])


def test_values_that_a_segment_states_are_revisions_of_its_topic() -> None:
    both = ["e01", "e02"]
    state = state_of(PETS, TRIP)
    assert values(state, "pet") == [("pets", '"Tom"', "llm", day(3), both), ("pets", '"Rex"', "llm", day(0), both)]
    assert values(state, "owner") == [("pets", '"Aya"', "llm", day(0), both)]
    assert {row[2] for row in values(state, "title") if row[0] == "pets"} == {"llm"}
    assert {row[2] for row in values(state, "title") if row[0] == "trip"} == {"import"}


def test_a_value_may_bear_the_name_of_what_every_segment_has() -> None:
    """No revision takes the id of another, although both have the same first evidence."""
    state = state_of(segment("pets", ["e01"], fields=[assertion("session", '"at the vet"')]))
    assert {row[1] for row in values(state, "session")} == {'"s"', '"at the vet"'}
    assert state.revisions["id"].n_unique() == state.revisions.height


def test_edges_of_a_segment_have_its_turns_as_evidence() -> None:
    edges = state_of(PETS, TRIP).edges
    assert edges.select("from_id", "to_id", "kind").rows() == [("pets", "trip", "mentions")]
    assert edges["evidence_ids"].to_list() == [["e01", "e02"]]
    assert edges["valid_from"].to_list() == [day(0)]


def test_segments_of_one_topic_that_link_alike_make_one_edge() -> None:
    later = segment("pets", ["e04"], title=None, began_at=day(5), ended_at=day(6), links=PETS["links"])
    edges = state_of(PETS, TRIP, later).edges
    assert edges["evidence_ids"].to_list() == [["e01", "e02", "e04"]]


@pytest.mark.parametrize("target", ["pets", "nobody"])
def test_an_edge_to_itself_or_to_nothing_is_left_out(target: str) -> None:
    state = state_of(PETS | {"links": [{"kind": "mentions", "to_topic_id": target}]}, TRIP)
    assert state.edges.is_empty()
    assert state.problems["kind"].to_list() == (["dangling_edge"] if target == "nobody" else [])


def merged(dropped: str, survivor: str, kind: str = "merged") -> pl.DataFrame:
    topics = {dropped: {"scope": SCOPES[0], "title": dropped, "topic_kind": None}}
    return merge_decisions([(dropped, survivor)], World(topics, {}, set(), {}, {}, {}, {}), kind)


def test_a_merge_carries_values_and_links_over_and_undoing_it_brings_them_back() -> None:
    other = segment("cats", ["e04"])
    state = state_of(PETS, TRIP, other, after=merged("pets", "cats"))
    assert {row[0] for row in values(state, "pet")} == {"cats"}
    assert state.edges.select("from_id", "to_id").rows() == [("cats", "trip")]
    assert state_of(PETS, TRIP, after=merged("trip", "pets")).edges.is_empty()
    undone = pl.concat([merged("pets", "cats"), merged("pets", "cats", "unmerged")])
    assert canonical(state_of(PETS, TRIP, other, after=undone)) == canonical(state_of(PETS, TRIP, other))


def test_values_and_links_keep_their_provenance(tmp_path: Path) -> None:
    """C1 and C4 hold on a graph that was made of segments which state values and edges."""
    state = state_of(PETS, TRIP)
    with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    spoken = sorted([*PETS["evidence_ids"], *TRIP["evidence_ids"]])
    evidence = evidence_frame([observation(int(name[1:])) for name in spoken])
    checked = checked_state_of(tmp_path / "graph", evidence, decided(PETS, TRIP), held=state.evidence_topic)
    assert query_soundness(checked).violations.is_empty()
    assert provenance(checked).violations.is_empty()


def test_what_was_recorded_is_read_back_to_the_letter() -> None:
    rows = segments(decided(PETS, TRIP)).drop("reason", "score")
    assert rows.row(0, named=True)["fields"] == PETS["fields"]
    assert rows.row(0, named=True)["links"] == PETS["links"]
    assert rows.select("provenance", "fields", "links").row(1) == ("import", [], [])


def test_a_record_of_an_earlier_version_has_the_defaults() -> None:
    payload = '{"title":"Trip","summary":"Oslo","began_at":"2026-01-01T00:00:00+00:00"}'
    row = {"kind": "segment_placed", "scope": SCOPES[0], "topic_id": "t", "payload_json": payload}
    read = segments(filled(pl.DataFrame([row | {"evidence_ids": ["e01"]}]), DECISION)).row(0, named=True)
    assert (read["title"], read["began_at"]) == ("Trip", day(0))
    assert (read["provenance"], read["fields"], read["links"]) == ("import", [], [])


def test_a_continued_topic_names_everybody_so_far_and_the_whole_time() -> None:
    """Also if the later segment was imported first."""
    first = segment("pets", ["e01"], participants=["Ben", "Aya"])
    later = segment("pets", ["e02"], title=None, summary=None, participants=["Cleo"], began_at=day(5), ended_at=day(6))
    expected = {
        "participants": [('["Aya","Ben","Cleo"]', day(5)), ('["Aya","Ben"]', day(0))],
        "period": [
            ('"2026-01-01T00:00:00Z/2026-01-07T00:00:00Z"', day(5)),
            ('"2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"', day(0)),
        ],
    }
    for rows in ((first, later), (later, first)):
        state = state_of(*rows)
        assert {name: [(row[1], row[3]) for row in values(state, name)] for name in expected} == expected


def test_somebody_who_was_there_before_is_named_once() -> None:
    again = segment("pets", ["e02"], title=None, participants=["Aya"], began_at=day(5), ended_at=day(6))
    (row,) = values(state_of(segment("pets", ["e01"]), again), "participants")
    assert (row[1], row[4]) == ('["Aya"]', ["e01", "e02"])


def test_a_segment_in_which_nobody_is_named_adds_nobody() -> None:
    nameless = segment("pets", ["e02"], title=None, participants=[], began_at=day(5), ended_at=day(6))
    assert {row[1] for row in values(state_of(segment("pets", ["e01"]), nameless), "participants")} == {'["Aya"]'}
    assert values(state_of(segment("pets", ["e01"], participants=[])), "participants") == []
