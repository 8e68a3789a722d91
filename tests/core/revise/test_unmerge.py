"""Undo of many merges at once: the same as one after another, from the oldest to the newest."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.errors import MergesUnknown
from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import REVIEWS, TOPICS
from memstate_core.model.ledger_tables import DECISION, TRANSITIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.unmerge import named_merges, unmerge_decisions
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import UNMERGED, merges, undone
from memstate_core.state.fold.identity import survivors
from memstate_core.state.fold.rollbacks import undone_by_rollbacks
from memstate_core.state.snapshots import Snapshot
from tests.core.frames import filled
from tests.core.strategies import day

Merges = list[tuple[int, int]]
"""Dropped topics and their survivors, in order."""

SIZE = 7
NAMES = [f"t{number}" for number in range(SIZE)]


@st.composite
def histories(draw: st.DrawFn) -> Merges:
    """Merges of living topics."""
    living, made = list(range(SIZE)), []
    for _ in range(draw(st.integers(1, SIZE - 1))):
        dropped, survivor = draw(st.permutations(living))[:2]
        living.remove(dropped)
        made.append((dropped, survivor))
    return made


def served_after(transitions: pl.DataFrame, snapshot: Snapshot) -> Served:
    """The served state that follows from merges and undos; each topic has one piece of evidence."""
    followed = survivors(merges(transitions))
    topics = pl.DataFrame({"id": NAMES, "title": NAMES}).join(
        followed.select(id="dropped", merged_into="survivor"), on="id", how="left"
    )
    home = pl.col("id").replace(followed["dropped"], followed["survivor"])
    links = topics.select(evidence_id=pl.format("e-{}", "id"), topic_id=home)
    return Served(
        snapshot,
        transitions,
        filled(topics, TOPICS),
        empty(ALIASES),
        filled(links, EVIDENCE_TOPIC),
        empty(REVIEWS),
        undone_by_rollbacks(transitions),
    )


def recorded(transitions: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """The transitions with some decisions after them."""
    rows = decisions.with_columns(
        seq=pl.int_range(transitions.height, transitions.height + pl.len(), dtype=pl.Int64),
        run_id=pl.lit("run"),
        at=pl.lit(day(1)),
    )
    return pl.concat([transitions, filled(rows, TRANSITIONS)])


def merged(history: Merges) -> pl.DataFrame:
    """The transitions of merges; each has a weight of its own."""
    rows = [
        {"kind": "merged", "topic_id": NAMES[dropped]}
        | {"payload_json": json.dumps({"survivor": NAMES[survivor], "weight": float(place), "probability": 0.9})}
        for place, (dropped, survivor) in enumerate(history)
    ]
    return recorded(empty(TRANSITIONS), filled(pl.DataFrame(rows), DECISION))


def undo(transitions: pl.DataFrame, names: list[str], snapshot: Snapshot) -> pl.DataFrame:
    """The transitions after one undo of all that is named."""
    served = served_after(transitions, snapshot)
    found = named_merges({"s0": served}, names)
    return recorded(transitions, unmerge_decisions(served, found.in_force["s0"]))


def parted(transitions: pl.DataFrame) -> list[tuple[str, str, float]]:
    return sorted(undone(transitions).select("a", "b", "weight").rows())


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return object.__new__(Snapshot)


@pytest.mark.slow
@settings(max_examples=25)
@given(histories(), st.data())
def test_many_are_undone_as_one_after_another(snapshot: Snapshot, history: Merges, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(history), unique=True, min_size=1))
    names = [NAMES[dropped] for dropped, _ in chosen]
    start = merged(history)
    at_once = undo(start, names, snapshot)
    one_by_one = start
    for dropped, _ in history:
        if NAMES[dropped] in names:
            one_by_one = undo(one_by_one, [NAMES[dropped]], snapshot)
    assert parted(at_once) == parted(one_by_one)
    assert merges(at_once).rows() == merges(one_by_one).rows()


@settings(max_examples=25)
@given(histories())
def test_what_was_one_group_is_kept_apart_pairwise(snapshot: Snapshot, history: Merges) -> None:
    start = merged(history)
    after = undo(start, [NAMES[dropped] for dropped, _ in history], snapshot)
    roots = dict(survivors(merges(start)).iter_rows())
    groups = [[name for name in NAMES if roots.get(name, name) == root] for root in NAMES]
    assert {(a, b) for a, b, _ in parted(after)} == {pair for group in groups for pair in combinations(group, 2)}
    assert merges(after).is_empty()


def test_a_topic_takes_what_was_merged_into_it_along_and_knows_the_evidence_of_its_group(snapshot: Snapshot) -> None:
    start = merged([(2, 1), (1, 0), (3, 0)])
    (row,) = undo(start, ["t1"], snapshot).filter(pl.col("kind") == UNMERGED).to_dicts()
    assert json.loads(row["payload_json"])["others"] == ["t0", "t3"]
    assert row["evidence_ids"] == ["e-t0", "e-t1", "e-t2", "e-t3"]


def test_merges_are_named_by_their_ids_and_by_the_topics_they_dropped(snapshot: Snapshot) -> None:
    served = served_after(merged([(2, 1), (1, 0)]), snapshot)
    first = merge_list(served).filter(pl.col("dropped") == "t2")["id"].item()
    found = named_merges({"s0": served}, ["t2", first, "t1", "t2"])
    assert found.in_force["s0"]["dropped"].sort().to_list() == ["t1", "t2"]
    assert found.undone == []


def test_merges_that_are_undone_are_passed_over(snapshot: Snapshot) -> None:
    after = undo(merged([(2, 1), (1, 0)]), ["t2"], snapshot)
    served = served_after(after, snapshot)
    found = named_merges({"s0": served}, ["t2", "t1"])
    assert found.in_force["s0"]["dropped"].to_list() == ["t1"]
    assert found.undone == ["t2"]
    assert named_merges({"s0": served}, ["t2"]).in_force == {}


def test_a_topic_merged_again_names_its_last_merge(snapshot: Snapshot) -> None:
    after = undo(merged([(2, 1)]), ["t2"], snapshot)
    first = merge_list(served_after(after, snapshot))["id"].item()
    again = {"kind": "merged", "topic_id": "t2", "payload_json": json.dumps({"survivor": "t0"})}
    served = served_after(recorded(after, filled(pl.DataFrame([again]), DECISION)), snapshot)
    assert named_merges({"s0": served}, ["t2"]).in_force["s0"]["survivor"].to_list() == ["t0"]
    assert named_merges({"s0": served}, [first]).undone == [first]


def test_every_id_that_names_no_merge_is_in_the_error(snapshot: Snapshot) -> None:
    served = served_after(merged([(2, 1)]), snapshot)
    manifest = type("Named", (), {"name": "s0/3"})()
    shards = {"s0": replace(served, snapshot=manifest)}
    with pytest.raises(MergesUnknown, match=r"'nobody', 't1'.*s0/3") as refused:
        named_merges(shards, ["nobody", "t2", "t1"])
    assert refused.value.facts["names"] == ["nobody", "t1"]
