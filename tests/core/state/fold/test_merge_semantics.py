"""The effects of a merge: nothing is lost, contradictions stay visible until time or a rule settles
them, names follow one rule, and a chain of merges means the same however many nights it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, PLACEMENTS, SEGMENTS
from memstate_core.night.checks.query_soundness import query_soundness
from memstate_core.night.checks.transition_soundness import transition_soundness
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.decisions import segment_decisions
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.fold.history import conflicts
from memstate_core.state.graph import FIELD, REVISION, open_graph
from memstate_core.state.state_hash import state_hash
from tests.core import reference
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of, tables
from tests.core.reference import Merge, Observation, World
from tests.core.state.fold.test_fold_properties import assert_is, canonical, contradicting, folded_with
from tests.core.strategies import (
    BUFFER_MIB,
    SCOPES,
    day,
    edge,
    evidence_frame,
    field,
    fill,
    folded,
    merge_decisions,
    observation,
    streams_with_merges,
)

pytestmark = pytest.mark.slow

BY_CONFIDENCE = Policy(conflict_rule="confidence")
Given = tuple[list[Observation], list[Merge]]


def says(number: int, topic: str, value: str, at: float = 0, /, **said: Any) -> Observation:
    """An observation of a topic's owner."""
    return observation(number, topic_id=topic, observed_at=day(at), fields=[field("owner", f'"{value}"', **said)])


def owner(state: State, topic: str = "a") -> tuple[str, list[str]]:
    """The current owner and its rivals."""
    is_owner = (pl.col("topic_id") == topic) & (pl.col("name") == "owner") & (pl.col("rank") == 0)
    return state.revisions.filter(is_owner)["value_json"].item(), contradicting(state, topic, "owner")


def merged(stream: Sequence[Observation], *merges: Merge, policy: Policy | None = None) -> State:
    return folded(stream, merge_decisions(merges, reference.fold(stream)), policy)


def row(state: State, topic: str) -> dict[str, Any]:
    return state.topics.row(by_predicate=pl.col("id") == topic, named=True)


# A conflict stays visible until a newer valid time or a rule settles it


def test_two_sides_that_contradict_each_other_are_in_conflict() -> None:
    state = merged([says(1, "a", "Aya"), says(2, "b", "Priya")], ("b", "a"))
    assert owner(state) == ('"Priya"', ['"Aya"'])
    assert conflicts(state.fields) == 1


CALM = {
    "equal values": [says(1, "a", "Aya"), says(2, "b", "Aya")],
    "another time": [says(1, "a", "Aya", 1), says(2, "b", "Priya")],
    "a newer third value": [says(1, "a", "Aya"), says(2, "b", "Priya"), says(3, "a", "Cleo", 1)],
    "the shown value said again": [says(1, "a", "Aya"), says(2, "b", "Priya"), says(3, "a", "Priya", 1)],
    "the other value said again": [says(1, "a", "Aya"), says(2, "b", "Priya"), says(3, "a", "Aya", 1)],
}


@pytest.mark.parametrize("stream", CALM.values(), ids=CALM)
def test_no_conflict(stream: list[Observation]) -> None:
    state = merged(stream, ("b", "a"))
    assert owner(state)[1] == []
    assert conflicts(state.fields) == 0


def test_lists_and_cleared_values() -> None:
    """A list contradicts nothing; a value that was cleared contradicts one that was not."""
    for number, (value, kind, expected) in enumerate(
        [('["Ben"]', "list", 0), ('["Ben"]', "json", 0), ("null", None, 1)]
    ):
        other = observation(2, topic_id="b", fields=[field("owner", value, field_type=kind)])
        state = merged([says(1, "a", "Aya"), other], ("b", "a"))
        assert (number, conflicts(state.fields)) == (number, expected)


def test_titles_and_summaries_have_no_conflicts() -> None:
    stream = [observation(1, topic_id="a", title="Acme", summary="x"), observation(2, topic_id="b", title="Lid")]
    state = merged(stream, ("b", "a"))
    assert state.revisions["rivals"].null_count() == state.revisions.height


def test_a_value_said_before_and_again_still_contradicts() -> None:
    """Whichever is shown, both have day 1 as valid time."""
    first = [says(1, "a", "Aya"), says(2, "a", "Aya", 1), says(3, "b", "Priya", 1)]
    second = [says(1, "a", "Aya"), says(3, "a", "Aya", 1), says(2, "b", "Priya", 1)]
    assert owner(merged(first, ("b", "a"))) == ('"Priya"', ['"Aya"'])
    assert owner(merged(second, ("b", "a"))) == ('"Aya"', ['"Priya"'])


def test_three_values_with_one_said_twice() -> None:
    stream = [says(1, "a", "Ben"), says(2, "b", "Cleo"), says(3, "c", "Ben"), says(4, "c", "Aya")]
    state = merged(stream, ("b", "a"), ("c", "b"))
    assert owner(state) == ('"Aya"', ['"Ben"', '"Cleo"'])
    nearest = state.revisions.filter(pl.col("rank") == 0)["rivals"].item().to_list()
    ranks = dict(state.revisions.select("id", "rank").iter_rows())
    assert [ranks[rival] for rival in nearest] == [1, 2]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (0.9, 0.5, ('"Aya"', [])),
        (0.5, 0.9, ('"Priya"', [])),
        (0.9, None, ('"Aya"', [])),
        (0.0, None, ('"Aya"', [])),
        (0.9, 0.9, ('"Priya"', ['"Aya"'])),
        (None, None, ('"Priya"', ['"Aya"'])),
    ],
)
def test_confidence_settles_a_tie_where_policy_says_so(
    ours: float | None, theirs: float | None, expected: tuple[str, list[str]]
) -> None:
    stream = [says(1, "a", "Aya", confidence=ours), says(2, "b", "Priya", confidence=theirs)]
    assert owner(merged(stream, ("b", "a"), policy=BY_CONFIDENCE)) == expected
    assert owner(merged(stream, ("b", "a"))) == ('"Priya"', ['"Aya"'])


def test_confidence_never_beats_valid_time() -> None:
    stream = [says(1, "a", "Aya", 1, confidence=0.1), says(2, "b", "Priya", 0, confidence=1.0)]
    assert owner(merged(stream, ("b", "a"), policy=BY_CONFIDENCE)) == ('"Aya"', [])


@settings(max_examples=40)
@given(streams_with_merges())
def test_under_the_rule_of_confidence_the_fold_is_what_the_rules_say(given_: Given) -> None:
    stream, merges = given_
    decisions = merge_decisions(merges, reference.fold(stream))
    state = folded(stream, decisions, BY_CONFIDENCE)
    assert_is(state, reference.fold(stream, merges, "confidence"))
    for slot in state.revisions.sort("rank").partition_by("topic_id", "part", "name"):
        assert slot["valid_from"].is_sorted(descending=True)


def test_in_the_graph_a_conflict_stays_as_it_is_and_out_of_the_state_hash(tmp_path: Path) -> None:
    """Written again, nothing changes; two graphs that differ in what is derived have one hash."""
    state = merged([says(1, "a", "Aya"), says(2, "b", "Priya"), says(3, "c", "Ben")], ("b", "a"))
    with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
        again = [graph.sync(REVISION, state.revisions), graph.sync(FIELD, state.fields, keep=("salience",))]
        assert [(synced.inserted, synced.updated, synced.deleted) for synced in again] == [(0, 0, 0)] * 2
        hashed = state_hash(graph)
        nothing = pl.lit(None, REVISIONS["rivals"])
        graph.sync(REVISION, state.revisions.with_columns(rivals=nothing, settled_at=pl.lit(day(1))))
        graph.sync(FIELD, state.fields.with_columns(conflicts=pl.lit(7)))
        assert state_hash(graph) == hashed


def test_under_the_rule_of_confidence_the_checks_hold(tmp_path: Path) -> None:
    """C1 on a tie, and C2 when the rule changes between nights: a rival was never superseded."""
    stream = [says(1, "a", "Aya", 1, confidence=0.9), says(2, "b", "Priya", 1, confidence=0.5), says(3, "a", "Ben")]
    states = {"before": merged(stream, ("b", "a")), "now": merged(stream, ("b", "a"), policy=BY_CONFIDENCE)}
    for name, state in states.items():
        with open_graph(tmp_path / name, buffer_mib=BUFFER_MIB) as graph:
            fill(graph, state)
    decisions = merge_decisions([("b", "a")], reference.fold(stream))
    checked = checked_state_of(tmp_path / "now", evidence_frame(stream), decisions, policy=BY_CONFIDENCE)
    assert [owner(state)[0] for state in states.values()] == ['"Priya"', '"Aya"']
    assert query_soundness(checked).passed
    assert transition_soundness(checked, tables(tmp_path / "before").revisions).passed


# Title, summary and kind: newest, then longest, then evidence id

LONG, SHORT = {"title": "Acme renewal 2026", "summary": "A long one"}, {"title": "Renewal", "summary": "Short"}


@pytest.mark.parametrize("merge", [True, False], ids=["merged", "in one topic"])
@pytest.mark.parametrize(("first", "second"), [(LONG, SHORT), (SHORT, LONG)])
def test_at_equal_times_the_longer_text_is_current(merge: bool, first: dict[str, str], second: dict[str, str]) -> None:
    stream = [observation(1, topic_id="a", **first), observation(2, topic_id="b" if merge else "a", **second)]
    state = merged(stream, ("b", "a")) if merge else folded(stream)
    assert {part: row(state, "a")[part] for part in LONG} == LONG


def test_characters_are_counted_not_bytes_or_escapes() -> None:
    stream = [observation(1, topic_id="a", title="abcd"), observation(2, topic_id="a", title='é"\n')]
    assert row(folded(stream), "a")["title"] == "abcd"


def test_a_newer_title_beats_a_longer_one_and_equal_ones_fall_to_the_evidence() -> None:
    newer = [observation(1, topic_id="a", observed_at=day(1), **SHORT), observation(2, topic_id="a", **LONG)]
    assert row(folded(newer), "a")["title"] == SHORT["title"]
    equal = [observation(2, topic_id="a", title="Plan B"), observation(1, topic_id="a", title="Plan A")]
    assert row(folded(equal), "a")["title"] == "Plan B"


# Tombstones: a chain is a chain


def nights(stream: Sequence[Observation], merges: Sequence[Merge]) -> pl.DataFrame:
    """The merges as decided one a night: each records what it then saw, and the survivor of that night."""
    decided = []
    for night, (dropped, survivor) in enumerate(merges):
        seen: World = reference.fold(stream, merges[:night])
        decided.append(merge_decisions([(dropped, seen.tombstones.get(survivor, survivor))], seen))
    return pl.concat([empty(DECISION), *decided])


@settings(max_examples=40)
@given(streams_with_merges(), st.randoms(use_true_random=False))
def test_a_chain_in_one_run_is_the_chain_over_many_nights(given_: Given, chance: Any) -> None:
    stream, merges = given_
    order = chance.sample(merges, len(merges))
    assert canonical(folded(stream, nights(stream, order))) == canonical(folded_with(stream, merges))


NAMED = [
    observation(1, topic_id="a", title="First", topic_kind="deal"),
    observation(2, topic_id="b", summary="It has no title"),
    observation(3, topic_key="acme", observed_at=day(1)),
    observation(4, topic_id="c", title="Third"),
]
KEYED = reference.fold(NAMED).placed["e03"] or ""


def test_a_tombstone_is_called_what_its_own_evidence_calls_it() -> None:
    """On the second night `b` and the keyed topic had the title and kind of the topics merged into them."""
    chain = [("a", "b"), ("b", KEYED), (KEYED, "c")]
    state = folded(NAMED, nights(NAMED, chain))
    names = {topic: (row(state, topic)["title"], row(state, topic)["topic_kind"]) for topic in ("a", "b", KEYED)}
    assert names == {"a": ("First", "deal"), "b": ("b", None), KEYED: ("acme", None)}
    assert canonical(state) == canonical(merged(NAMED, *chain))


def test_a_tombstone_without_evidence_keeps_the_recorded_names() -> None:
    stream = [observation(1, title="Plan B", topic_kind="deal"), observation(2, topic_id="t", title="Acme")]
    dropped = reference.fold(stream).placed["e01"] or ""
    decisions = merge_decisions([(dropped, "t")], reference.fold(stream))
    moved = observation(3, topic_key="plan", title="Plan B", topic_kind="deal")
    tombstone = row(folded([*stream, moved], decisions), dropped)
    assert (tombstone["title"], tombstone["topic_kind"]) == ("Plan B", "deal")


def segment(topic: str, evidence_id: str, title: str, ended: float = 1) -> dict[str, Any]:
    own = {"topic_id": topic, "scope": SCOPES[0], "evidence_ids": [evidence_id], "session_id": f"s{evidence_id}"}
    times = {"began_at": day(0), "ended_at": day(ended)}
    return {**own, **times, "title": title, "summary": f"About {title}", "participants": ["Aya"]}


def merged_segments(*rows: dict[str, Any]) -> State:
    """The topics of two segments, the second's merged into the first's by a decision that recorded odd names."""
    ids = {"evidence_id": ["e01", "e02"], "scope": SCOPES[0], "topic_id": [row["topic_id"] for row in rows]}
    misled = {"y": {"scope": SCOPES[0], "title": "Something else", "topic_kind": "odd"}}
    merge = merge_decisions([("y", "x")], World(misled, {}, set(), {}, {}, {}, {}))
    decisions = pl.concat([segment_decisions(filled(pl.DataFrame(rows), SEGMENTS)), merge])
    evidence = evidence_frame([observation(1), observation(2)])
    return fold(evidence, filled(pl.DataFrame(ids), PLACEMENTS), empty(ALIASES), decisions, Policy())


def test_segments_merge_by_the_same_rules() -> None:
    """Turns have no title of their own: the segment that placed them names the tombstone; periods may overlap."""
    state = merged_segments(segment("x", "e01", "Trip to Oslo"), segment("y", "e02", "Trip"))
    assert (row(state, "y")["title"], row(state, "y")["topic_kind"]) == ("Trip", None)
    assert (row(state, "x")["title"], row(state, "x")["summary"]) == ("Trip to Oslo", "About Trip to Oslo")
    assert state.revisions.filter(pl.col("name") == "session").height == 2
    assert conflicts(state.fields) == 0


def test_when_a_segment_ended_does_not_decide_its_title() -> None:
    state = merged_segments(segment("x", "e01", "Trip", 5), segment("y", "e02", "Trek", 1))
    assert row(state, "x")["title"] == "Trek"


# No content of either topic is lost


def assertions(state: State, follow: dict[str, str] | None = None) -> set[tuple[str, ...]]:
    """(current topic, part, name, value, evidence) of every revision."""
    rows = state.revisions.explode("evidence_ids").select("topic_id", "part", "name", "value_json", "evidence_ids")
    return {((follow or {}).get(topic, topic), *rest) for topic, *rest in rows.iter_rows()}


@settings(max_examples=40)
@given(streams_with_merges())
def test_every_revision_and_all_evidence_of_both_sides_stay(given_: Given) -> None:
    stream, merges = given_
    apart, together = folded(stream), folded_with(stream, merges)
    follow = reference.fold(stream, merges).tombstones
    assert assertions(together) == assertions(apart, follow)
    answering = pl.col("topic_id").replace(follow)
    assert together.evidence_topic.sort("evidence_id").equals(
        apart.evidence_topic.with_columns(answering).sort("evidence_id")
    )


@settings(max_examples=40)
@given(streams_with_merges())
def test_the_history_of_a_merge_is_the_interleaving_of_its_sides(given_: Given) -> None:
    """Every value is said once, so no neighbours are combined: each side keeps its order inside the whole."""
    stream, merges = given_
    for said in stream:
        for place, value in enumerate(said["fields"]):
            value["value_json"] = f'"{said["evidence_id"]} {place}"'
    follow = reference.fold(stream, merges).tombstones
    wholes, sides = histories(folded_with(stream, merges)), histories(folded(stream))
    for (topic, name), side in sides.items():
        whole = wholes[follow.get(topic, topic), name]
        assert [entry for entry in whole if entry in side] == side
    assert sum(map(len, wholes.values())) == sum(map(len, sides.values()))


def histories(state: State) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Values, times and evidence of fields by topic and name, newest first."""
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for said in state.revisions.filter(pl.col("part") == "field").sort("rank").iter_rows(named=True):
        entry = (said["value_json"], said["valid_from"], said["evidence_ids"])
        found.setdefault((said["topic_id"], said["name"]), []).append(entry)
    return found


# Edges, references and ids follow

LINKED = [
    observation(1, topic_id="a", edges=[edge("part_of", to_topic_id="x"), edge("mentions", to_topic_id="b")]),
    observation(2, topic_id="b", edges=[edge("part_of", to_topic_id="x"), edge("part_of", to_topic_id="c")]),
    observation(3, topic_id="c", fields=[field("lead", '"Aya"', ref_given=True, ref_topic_id="a")]),
    observation(4, topic_id="x", edges=[edge("mentions", to_topic_id="a"), edge("mentions", to_topic_id="b")],
                fields=[field("lead", '"Aya"', ref_given=True, ref_topic_id="a")]),
]  # fmt: skip


def links(state: State) -> dict[tuple[str, str, str], list[str]]:
    rows = state.edges.select("from_id", "to_id", "kind", "evidence_ids")
    return {(a, b, kind): cited for a, b, kind, cited in rows.iter_rows()}


def test_edges_are_pointed_anew_and_one_to_itself_is_dropped_until_the_merge_is_undone() -> None:
    state = merged(LINKED, ("a", "b"))
    assert links(state) == {
        ("b", "x", "part_of"): ["e01", "e02"], ("b", "c", "part_of"): ["e02"], ("x", "b", "mentions"): ["e04"],
    }  # fmt: skip
    world = reference.fold(LINKED)
    undone = pl.concat([merge_decisions([("a", "b")], world), merge_decisions([("a", "b")], world, "unmerged")])
    assert ("a", "b", "mentions") in links(folded(LINKED, undone))
    assert canonical(folded(LINKED, undone)) == canonical(folded(LINKED))


def test_references_and_tombstones_follow_a_chain_to_its_end() -> None:
    state = merged(LINKED, ("a", "b"), ("b", "c"))
    references = dict(state.fields.select("topic_id", "ref_topic_id").iter_rows())
    assert references == {"c": "c", "x": "c"}
    assert {topic: row(state, topic)["merged_into"] for topic in "ab"} == {"a": "c", "b": "c"}
    assert set(state.evidence_topic.filter(pl.col("topic_id") == "c")["evidence_id"]) == {"e01", "e02", "e03"}


def test_an_alias_leads_through_the_chain() -> None:
    stream = [observation(1, topic_id="a", title="Acme"), observation(2, title="Acme"), *LINKED[1:3]]
    state = merged(stream, ("a", "b"), ("b", "c"))
    assert state.aliases["topic_id"].unique().to_list() == ["c"]
