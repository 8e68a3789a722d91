"""An access counts once, for the topic that it resolves to and the fields that it names, and for nothing else."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.model.step_frames import ALIASES
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.fold import State
from memstate_core.state.fold.usage_events import ACCESS_EVENTS, access_events, field_events, topic_events
from tests.core import reference
from tests.core.frames import filled
from tests.core.strategies import accessed, day, field, folded, merge_decisions, observation

STREAM = [
    observation(1, topic_id="a", fields=[field("owner", '"Aya"'), field("stage", "1")]),
    observation(2, topic_id="b", title="Plan", fields=[field("owner", '"Ben"')]),
    observation(3, title="Plan"),
    observation(4, topic_id="bare"),
]
NO_SCOPES = pl.DataFrame(schema={"topic_id": pl.String, "scope": pl.String})
NO_MERGES = pl.DataFrame(schema={"dropped": pl.String, "survivor": pl.String})
topics = st.sampled_from(("a", "b", "bare", "nobody"))
named = st.none() | st.lists(st.sampled_from(("owner", "stage", "ghost")), max_size=3)
accesses = st.lists(
    st.fixed_dictionaries({"topic_id": topics, "at": st.integers(0, 30), "fields": named, "failed": st.booleans()}),
    max_size=8,
)


def events(*used: dict[str, Any]) -> pl.DataFrame:
    return access_events(accessed(*used), empty(ALIASES), NO_MERGES, NO_SCOPES, Policy())


def test_no_access_counts_for_a_topic_of_another_scope() -> None:
    """A tenant may have had a topic whose id another tenant's later topic takes."""
    scopes = pl.DataFrame({"topic_id": ["a", "b"], "scope": ["user:x", "user:y"]})
    used = accessed(*({"topic_id": topic, "at": 0} for topic in ("a", "a", "b", "none")))
    given = used.with_columns(scope=pl.Series(["user:x", "user:y", None, "user:x"]))
    assert access_events(given, empty(ALIASES), NO_MERGES, scopes, Policy())["topic_id"].to_list() == ["a", "b"]


def strengths(state: State) -> dict[str, float]:
    """Of topics by id, and of fields by id and name."""
    found = dict(state.topics.filter(pl.col("merged_into").is_null()).select("id", "strength").iter_rows())
    rows = state.fields.select(pl.format("{}.{}", "topic_id", "name"), "strength").iter_rows()
    return {name: round(value, 9) for name, value in (found | dict(rows)).items()}


def raised(*used: dict[str, Any], merges: list[tuple[str, str]] | None = None) -> dict[str, float]:
    """The strength that accesses at the time of the evidence add to their topics and fields."""
    decided = merge_decisions(merges or [], reference.fold(STREAM))
    before, after = strengths(folded(STREAM, decided)), strengths(folded(STREAM, decided, accesses=accessed(*used)))
    return {name: round(after[name] - was, 9) for name, was in before.items() if after[name] != was}


@pytest.mark.parametrize("fields", [None, []])
def test_use_of_a_topic_is_use_of_all_its_fields(fields: list[str] | None) -> None:
    assert raised({"topic_id": "a", "at": 0, "fields": fields}) == {"a": 0.1, "a.owner": 0.1, "a.stage": 0.1}


def test_use_of_fields_leaves_the_others_and_is_one_use_of_the_topic() -> None:
    assert raised({"topic_id": "a", "at": 0, "fields": ["owner"]}) == {"a": 0.1, "a.owner": 0.1}
    both = {"topic_id": "a", "at": 0, "fields": ["owner", "stage", "owner"]}
    assert raised(both) == {"a": 0.1, "a.owner": 0.1, "a.stage": 0.1}


def test_a_name_that_no_field_bears_is_a_use_of_the_topic_alone() -> None:
    assert raised({"topic_id": "a", "at": 0, "fields": ["ghost"]}) == {"a": 0.1}
    assert raised({"topic_id": "bare", "at": 0, "fields": ["owner"]}) == {"bare": 0.1}


def test_use_of_what_nobody_knows_concerns_nobody() -> None:
    assert raised({"topic_id": "nobody", "at": 0}, {"topic_id": "", "at": 3}) == {}


def test_an_access_recorded_twice_counts_once_and_two_of_one_moment_count_twice() -> None:
    once = accessed({"topic_id": "a", "at": 0})
    twice = pl.concat([once, once.with_columns(run_id=pl.lit("again"))])
    assert access_events(twice, empty(ALIASES), NO_MERGES, NO_SCOPES, Policy()).height == 1
    assert raised({"topic_id": "bare", "at": 0}, {"topic_id": "bare", "at": 0}) == {"bare": 0.2}


def test_use_of_an_alias_is_use_of_its_owner() -> None:
    alias = folded(STREAM).aliases["alias"][0]
    assert raised({"topic_id": alias, "at": 0}) == {"b": 0.1, "b.owner": 0.1}


def test_use_of_what_was_merged_away_is_use_of_the_survivor_also_through_a_chain_and_an_alias() -> None:
    chain = [("b", "a"), ("a", "bare")]
    everything = {"bare": 0.1, "bare.owner": 0.1, "bare.stage": 0.1}
    alias = folded(STREAM).aliases["alias"][0]
    for name in ("a", "b", "bare", alias):
        assert raised({"topic_id": name, "at": 0}, merges=chain) == everything
    assert raised({"topic_id": "b", "at": 0, "fields": ["stage"]}, merges=chain) == {"bare": 0.1, "bare.stage": 0.1}


def test_undoing_a_merge_gives_each_side_its_own_accesses_again() -> None:
    world, used = reference.fold(STREAM), accessed({"topic_id": "b", "at": 5}, {"topic_id": "a", "at": 6})
    undone = pl.concat([merge_decisions([("b", "a")], world), merge_decisions([("b", "a")], world, "unmerged")])
    assert strengths(folded(STREAM, undone, accesses=used)) == strengths(folded(STREAM, accesses=used))


def test_a_failure_adds_blame_and_no_strength() -> None:
    state = folded(STREAM, accesses=accessed({"topic_id": "bare", "at": 0, "failed": True}))
    row = state.topics.row(by_predicate=pl.col("id") == "bare", named=True)
    assert (row["strength"], row["failed_strength"]) == (1.0, 0.1)
    assert row["half_life_days"] < 90
    assert set(folded(STREAM).topics["failed_strength"]) == {0.0}


def test_a_use_ahead_of_the_evidence_is_the_last_event() -> None:
    state = folded(STREAM, accesses=accessed({"topic_id": "bare", "at": 35}))
    assert state.topics.row(by_predicate=pl.col("id") == "bare", named=True)["reinforced_at"] == day(35)


@pytest.mark.slow
@given(accesses, st.randoms(use_true_random=False))
def test_the_order_of_accesses_does_not_matter(recorded: list[dict[str, Any]], chance: Any) -> None:
    frame = accessed(*recorded)
    mixed = frame[chance.sample(range(frame.height), frame.height)]
    one, other = folded(STREAM, accesses=mixed), folded(STREAM, accesses=frame)
    assert one.topics.equals(other.topics)
    assert one.fields.equals(other.fields)


@given(accesses)
def test_each_access_is_one_event_of_its_topic_and_at_most_one_of_each_field(recorded: list[dict[str, Any]]) -> None:
    used = events(*recorded)
    said = pl.DataFrame({"topic_id": ["a", "a"], "name": ["owner", "stage"], "at": [day(0)] * 2})
    own = [access for access in recorded if access["topic_id"] == "a"]
    of_topic = topic_events(said.drop("name"), used, Policy()).filter(pl.col("topic_id") == "a")
    assert of_topic.height == 2 + len(own)
    of_fields = field_events(said, used, Policy())
    for name in ("owner", "stage"):
        hits = sum(not access["fields"] or name in access["fields"] for access in own)
        assert of_fields.filter(pl.col("name") == name).height == 1 + hits


def test_without_accesses_there_are_no_rows() -> None:
    none = access_events(empty(ACCESSES), empty(ALIASES), NO_MERGES, NO_SCOPES, Policy())
    assert none.schema == ACCESS_EVENTS
    assert none.is_empty()
    assert filled(events({"topic_id": "a", "at": 0}), ACCESS_EVENTS).height == 1
