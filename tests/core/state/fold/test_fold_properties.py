"""The laws of the fold, over random streams: it equals the reference (tests.core.reference), it does not
depend on order (L2), late data never becomes current (L7), a night after a night is a rebuild (L3), and
a merge that was undone leaves no trace (L4).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memstate_core.model.forms.core_block import CoreBlock
from memstate_core.model.ids import uuid_text
from memstate_core.placement.named import place_named
from memstate_core.state.fold.fold import State
from memstate_core.state.graph import open_graph
from memstate_core.state.state_hash import canonical_lines, state_hash
from tests.core import reference
from tests.core.forms import formed
from tests.core.reference import Merge, Observation, World
from tests.core.strategies import (
    BUFFER_MIB,
    KEYS,
    NO_SEGMENTS,
    SCOPES,
    day,
    edge,
    evidence_frame,
    field,
    fields,
    fill,
    folded,
    merge_decisions,
    observation,
    streams,
    streams_with_merges,
)


def folded_with(stream: Sequence[Observation], merges: Sequence[Merge]) -> State:
    return folded(stream, merge_decisions(merges, reference.fold(stream)))


def canonical(state: State) -> dict[str, list[str]]:
    """Every frame of a state as sorted lines, every column included."""
    return {name: canonical_lines(name, frame) for name, frame in vars(state).items()}


# The fold equals the reference


@pytest.mark.slow
@settings(max_examples=60)
@given(streams())
def test_every_observation_goes_where_the_rules_of_placement_send_it(stream: list[Observation]) -> None:
    evidence = evidence_frame(stream)
    placed = place_named(evidence, NO_SEGMENTS)
    expected, aliases = reference.place(sorted(stream, key=lambda o: (o["observed_at"], o["evidence_id"])))
    assert dict(placed.placements.select("evidence_id", "topic_id").iter_rows()) == expected
    assert dict(placed.aliases.select("alias", "topic_id").iter_rows()) == aliases
    refused = placed.placements.filter(pl.col("operation") == "refused")["evidence_id"].to_list()
    assert sorted(refused) == sorted(evidence_id for evidence_id, topic in expected.items() if topic is None)


@pytest.mark.slow
@settings(max_examples=50)
@given(streams())
def test_a_stream_folds_to_what_the_rules_say(stream: list[Observation]) -> None:
    assert_is(folded(stream), reference.fold(stream))


@pytest.mark.slow
@settings(max_examples=60)
@given(streams_with_merges())
def test_merges_fold_to_what_the_rules_say(given_: tuple[list[Observation], list[Merge]]) -> None:
    stream, merges = given_
    assert_is(folded_with(stream, merges), reference.fold(stream, merges))


def test_one_field_through_four_hands() -> None:
    """An example to read: a late value, a repeated one, and a tie that the evidence id breaks."""
    stream = [
        observation(1, topic_key="acme", observed_at=day(4), fields=[field("owner", '"Ben"', confidence=0.5)]),
        observation(2, topic_key="acme", observed_at=day(5), fields=[field("owner", '"Ben"', confidence=0.9)]),
        observation(3, topic_key="acme", observed_at=day(6), fields=[field("owner", '"Aya"', valid_from=day(1))]),
        observation(4, topic_key="acme", observed_at=day(4), fields=[field("owner", '"Cleo"')]),
    ]
    (topic,) = reference.fold(stream).topics.values()
    assert topic["fields"]["owner"]["history"] == [
        ('"Ben"', day(5), ["e02"], 0.9),
        ('"Cleo"', day(4), ["e04"], None),
        ('"Ben"', day(4), ["e01"], 0.5),
        ('"Aya"', day(1), ["e03"], None),
    ]
    assert_is(folded(stream), reference.fold(stream))


KEY_OF_KITE = uuid_text("key", SCOPES[1], "acme")
TITLE_OF_KITE = uuid_text("title", SCOPES[1], "", "acme renewal")
GUESSED = [
    ("a key", KEY_OF_KITE, {"topic_key": "acme"}),
    ("a title", TITLE_OF_KITE, {"title": "Acme Renewal"}),
    ("an earlier use", "t-1", {"topic_id": "t-1", "observed_at": day(-1)}),
]


@pytest.mark.parametrize(("topic_id", "owner"), [case[1:] for case in GUESSED], ids=[case[0] for case in GUESSED])
def test_an_id_that_another_scope_owns_is_refused_however_late_the_owner_comes(
    topic_id: str, owner: dict[str, Any]
) -> None:
    guess = observation(1, scope=SCOPES[0], topic_id=topic_id, fields=[field("owner", '"Aya"')])
    assert_is(folded([guess]), reference.fold([guess]))
    stream = [guess, observation(2, **{"scope": SCOPES[1], "observed_at": day(3)} | owner)]
    assert reference.fold(stream).placed == {"e01": None, "e02": topic_id}
    assert_is(folded(stream), reference.fold(stream))


def test_one_edge_from_three_hands() -> None:
    """It begins at the earliest time given, and ends when the newest observation says."""
    said = [
        (1, day(2), edge("part_of", to_topic_key="acme", valid_until=day(20))),
        (2, day(5), edge("part_of", to_topic_key="acme", valid_from=day(1), valid_until=day(9))),
        (3, day(4), edge("part_of", to_topic_key="acme", valid_from=day(3), valid_until=day(7))),
    ]
    stream = [observation(n, topic_key="plan", observed_at=at, edges=[edge]) for n, at, edge in said]
    stream.append(observation(4, topic_key="acme", observed_at=day(9)))
    assert list(reference.fold(stream).edges.values()) == [(day(1), day(9), ["e01", "e02", "e03"])]
    assert_is(folded(stream), reference.fold(stream))


def written(number: int, memory: dict[str, Any], observed: float = 0, scope: str = SCOPES[0]) -> Observation:
    """An observation with a form of `memory`."""
    taken = formed(memory, scope, day(observed), f"o{number}")
    return observation(number, scope=scope, observed_at=day(observed), **taken)


@pytest.mark.parametrize("named", [1, 3], ids=["named before", "named after"])
@pytest.mark.parametrize("arrives", [0, 2], ids=["record first", "form first"])
def test_a_record_that_names_the_topic_of_a_form_is_refused_whichever_comes_first(named: int, arrives: int) -> None:
    block = written(1, {"type": "core_block", "label": "rules", "content": "Ask first."}, observed=2)
    topic_id = uuid_text("key", SCOPES[0], CoreBlock.key_of("rules"))
    said = {"topic_id": topic_id, "observed_at": day(named), "title": "Rules", "summary": "No rules"}
    record = observation(2, **said, fields=[field("content", '"Never ask."')])
    assert reference.fold([record]).placed == {"e02": topic_id}, "until there is such a form the id is free"
    stream = [record, block] if arrives == 0 else [block, record]
    assert reference.fold(stream).placed == {"e01": topic_id, "e02": None}
    assert canonical(folded(stream))["revisions"] == canonical(folded([block]))["revisions"]
    assert_is(folded(stream), reference.fold(stream))


@pytest.mark.parametrize("last", ["observation:o3", "observation:o1"], ids=["to its end", "in a circle"])
def test_what_is_about_observations_about_observations_is_followed(last: str) -> None:
    stream = [
        written(1, {"type": "relation", "source": "observation:o2", "relation": "extends", "target": "key:plan"}),
        written(2, {"type": "relation", "source": last, "relation": "supports", "target": "key:plan"}),
        observation(3, topic_key="acme", title="Acme"),
        observation(4, topic_key="plan", title="Plan"),
    ]
    acme = uuid_text("key", SCOPES[0], "acme") if last == "observation:o3" else None
    assert [reference.fold(stream).placed[name] for name in ("e01", "e02")] == [acme, acme]
    assert_is(folded(stream), reference.fold(stream))


def test_nothing_folds_to_nothing() -> None:
    state = folded([])
    assert all(frame.is_empty() for frame in vars(state).values())


# L2: order does not matter


@pytest.mark.slow
@settings(max_examples=30)
@given(streams_with_merges(), st.randoms(use_true_random=False))
def test_any_order_of_the_evidence_gives_the_identical_state(
    given_: tuple[list[Observation], list[Merge]], chance: Any
) -> None:
    stream, merges = given_
    shuffled = chance.sample(stream, len(stream))
    assert canonical(folded_with(shuffled, merges)) == canonical(folded_with(stream, merges))


def test_an_edge_said_twice_by_one_observation_ends_when_its_last_word_says() -> None:
    """The two share time and evidence, so only their place in the observation can decide."""
    twice = [edge("part_of", to_topic_key="acme", valid_until=day(n)) for n in (3, 2)]
    stream = [observation(n, topic_key=f"part {n}", edges=twice) for n in range(1, 60)]
    state = folded([observation(0, topic_key="acme"), *stream])
    assert state.edges["valid_until"].unique().to_list() == [day(2)]


# L7: late data never becomes current


@pytest.mark.slow
@settings(max_examples=30)
@given(streams(), fields, st.sampled_from(SCOPES), st.sampled_from(KEYS), st.booleans())
def test_late_data_never_becomes_current(
    stream: list[Observation], late: dict[str, Any], scope: str, key: str, observed_late: bool
) -> None:
    """In a topic that keeps its scope: a key can recover its id from a scope that used it."""
    before = day(-1)
    said = late | {"valid_from": None if observed_late else before}
    observed_at = before if observed_late else day(9)
    extra = observation(99, scope=scope, topic_key=key, observed_at=observed_at, fields=[said])
    placed = reference.fold(stream).placed
    assume(reference.fold([*stream, extra]).placed == placed | {"e99": reference.fold([extra]).placed["e99"]})
    known, after = current(folded(stream)), current(folded([*stream, extra]))
    assert {slot: after[slot] for slot in known} == known


def current(state: State) -> dict[tuple[str, str, str], str]:
    rows = state.revisions.filter(pl.col("rank") == 0).select("topic_id", "part", "name", "value_json")
    return {(topic, part, name): value for topic, part, name, value in rows.iter_rows()}


@pytest.mark.slow
@settings(max_examples=30)
@given(streams_with_merges())
def test_histories_are_ordered_by_valid_time(given_: tuple[list[Observation], list[Merge]]) -> None:
    revisions = folded_with(*given_).revisions.sort("topic_id", "part", "name", "rank")
    for slot in revisions.partition_by("topic_id", "part", "name"):
        assert slot["rank"].to_list() == list(range(slot.height))
        assert slot["valid_from"].is_sorted(descending=True)
        assert (slot["value_json"] != slot["value_json"].shift()).all()


# L3: night after night is a rebuild


@pytest.mark.slow
@settings(max_examples=15)
@given(streams_with_merges(), st.data())
def test_a_graph_grown_by_nights_is_the_graph_built_at_once(
    given_: tuple[list[Observation], list[Merge]], data: st.DataObject
) -> None:
    stream, merges = given_
    cut = data.draw(st.integers(0, len(stream)), label="evidence of the first night")
    whole = folded_with(stream, merges)
    with tempfile.TemporaryDirectory() as folder:
        grown = hash_after(Path(folder) / "grown", folded(stream[:cut]), whole)
        built = hash_after(Path(folder) / "built", whole)
    assert grown == built


@pytest.mark.slow
@settings(max_examples=5)
@given(streams_with_merges())
def test_undoing_merges_restores_the_graph_before(given_: tuple[list[Observation], list[Merge]]) -> None:
    stream, merges = given_
    plain, merged = folded(stream), folded_with(stream, merges)
    with tempfile.TemporaryDirectory() as folder:
        there_and_back = hash_after(Path(folder) / "back", plain, merged, plain)
        never_merged = hash_after(Path(folder) / "never", plain)
    assert there_and_back == never_merged


def hash_after(path: Path, *states: State) -> str:
    with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        for state in states:
            fill(graph, state)
        return state_hash(graph)


# L4: undone merges leave no trace


@pytest.mark.slow
@settings(max_examples=20)
@given(streams_with_merges(), st.randoms(use_true_random=False))
def test_merges_that_were_undone_leave_no_trace(given_: tuple[list[Observation], list[Merge]], chance: Any) -> None:
    stream, merges = given_
    world = reference.fold(stream)
    undone = chance.sample(merges, len(merges))
    decisions = pl.concat([merge_decisions(merges, world), merge_decisions(undone, world, kind="unmerged")])
    assert canonical(folded(stream, decisions)) == canonical(folded(stream))


@pytest.mark.slow
@settings(max_examples=30)
@given(streams_with_merges(), st.data())
def test_undoing_one_merge_is_never_having_decided_it(
    given_: tuple[list[Observation], list[Merge]], data: st.DataObject
) -> None:
    stream, merges = given_
    world = reference.fold(stream)
    undone = data.draw(st.lists(st.sampled_from(merges), unique=True) if merges else st.just([]), label="undone")
    decisions = pl.concat([merge_decisions(merges, world), merge_decisions(undone, world, kind="unmerged")])
    left = [merge for merge in merges if merge not in undone]
    assert canonical(folded(stream, decisions)) == canonical(folded_with(stream, left))


# A title that gets an owner after a merge


@pytest.mark.parametrize("survives", [True, False], ids=["survivor", "dropped"])
def test_a_merge_holds_when_a_later_dump_brings_the_owner_of_a_title(survives: bool) -> None:
    """The merge settled the alias: its evidence stays, and so do the topics merged with it."""
    stream = [
        observation(1, title="Plan B", topic_kind="deal"),
        observation(2, topic_id="t-1", title="Another"),
    ]
    alias = reference.fold(stream[:1]).placed["e01"] or ""
    merge = ("t-1", alias) if survives else (alias, "t-1")
    decisions = merge_decisions([merge], reference.fold(stream))
    late = observation(3, topic_key="plan", title="Plan B", topic_kind="deal", observed_at=day(2))
    state = folded([*stream, late], decisions, settled=merge)
    links = dict(state.evidence_topic.select("evidence_id", "topic_id").iter_rows())
    assert links["e01"] == links["e02"]


def test_a_tombstone_leads_to_a_living_topic_when_all_its_evidence_moved_on() -> None:
    stream = [observation(1, title="Plan B", topic_kind="deal"), observation(2, title="Acme", topic_kind="deal")]
    world = reference.fold(stream)
    dropped, survivor = sorted(world.topics)
    owners = [
        observation(3, topic_key="plan", title="Plan B", topic_kind="deal"),
        observation(4, topic_key="acme", title="Acme", topic_kind="deal"),
    ]
    merge = (dropped, survivor)
    topics = folded([*stream, *owners], merge_decisions([merge], world), settled=merge).topics
    leads_to = topics.filter(pl.col("state") == "merged")["merged_into"]
    assert leads_to.is_in(topics.filter(pl.col("state") != "merged")["id"].implode()).all()


# How a state is compared with the reference


def assert_is(state: State, world: World) -> None:
    assert described_topics(state) == world.topics
    assert described_edges(state) == world.edges
    tombstones = state.topics.filter(pl.col("state") == "merged")
    assert dict(tombstones.select("id", "merged_into").iter_rows()) == world.tombstones
    named = {row["id"]: (row["title"], row["topic_kind"]) for row in tombstones.iter_rows(named=True)}
    assert named == world.names
    links = dict(state.evidence_topic.select("evidence_id", "topic_id").iter_rows())
    assert links == {evidence: topic for evidence, topic in world.placed.items() if topic is not None}
    dangling = state.problems.filter(pl.col("kind") == "dangling_edge")
    said = dangling.select("topic_id", pl.col("detail").str.split(" to ").list.first())
    assert set(said.iter_rows()) == world.dangling_edges
    lost = {(topic, name) for topic, said in world.topics.items() for name in said["fields"] if is_lost(said, name)}
    references = state.problems.filter(pl.col("kind") == "dangling_reference")
    assert (
        set(references.select("topic_id", pl.col("detail").str.extract("^field (.*) refers to ")).iter_rows()) == lost
    )


def is_lost(topic: dict[str, Any], name: str) -> bool:
    return bool(topic["fields"][name]["ref_state"] == "dangling")


def described_topics(state: State) -> dict[str, dict[str, Any]]:
    """A state's living topics in the shape that the reference gives them."""
    topics: dict[str, dict[str, Any]] = {}
    for row in state.topics.filter(pl.col("state") == "active").iter_rows(named=True):
        parts = {name: row[name] for name in ("scope", "title", "summary", "topic_kind")}
        topics[row["id"]] = {**parts, "fields": {}, "evidence_ids": []}
    for row in state.fields.iter_rows(named=True):
        described = {name: row[name] for name in ("field_type", "ref_topic_id", "ref_state")}
        conflict = contradicting(state, row["topic_id"], row["name"])
        assert row["conflicts"] == len(conflict)
        topics[row["topic_id"]]["fields"][row["name"]] = {**described, "history": [], "conflict": conflict}
    for row in state.revisions.filter(pl.col("part") == "field").sort("rank").iter_rows(named=True):
        revision = tuple(row[name] for name in ("value_json", "valid_from", "evidence_ids", "confidence"))
        topics[row["topic_id"]]["fields"][row["name"]]["history"].append(revision)
    for evidence, _, topic in state.evidence_topic.sort("evidence_id").iter_rows():
        topics[topic]["evidence_ids"].append(evidence)
    return topics


def contradicting(state: State, topic: str, name: str) -> list[str]:
    """The values (as JSON, sorted) that contradict the current one of a field."""
    is_current = (pl.col("part") == "field") & (pl.col("rank") == 0)
    found = state.revisions.filter(is_current & (pl.col("topic_id") == topic) & (pl.col("name") == name))
    rivals = found.filter(pl.col("settled_at").is_null())["rivals"].explode()
    return state.revisions.filter(pl.col("id").is_in(rivals.implode()))["value_json"].sort().to_list()


def described_edges(state: State) -> dict[tuple[str, str, str], tuple[Any, Any, list[str]]]:
    return {
        (row["from_id"], row["to_id"], row["kind"]): (row["valid_from"], row["valid_until"], row["evidence_ids"])
        for row in state.edges.iter_rows(named=True)
    }
