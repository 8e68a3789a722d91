"""What the ladder archives: nothing without pressure, the faded under pressure, the lowest over the bound."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget.ladder import forget, to_archive
from memstate_core.model.frames import CHANGES, DECISION
from memstate_core.policy.settings import Policy
from memstate_core.state.graph import TOPIC, open_graph
from tests.core.strategies import BUFFER_MIB, begin, fill, folded, observation

Topic = tuple[str, str, str, float]
"""Id, scope, state, salience."""

SCHEMA = {"topic_id": pl.String, "scope": pl.String, "state": pl.String, "salience": pl.Float64}
AYA, KITE = "user:aya", "project:kite"
topics = st.lists(
    st.tuples(
        st.sampled_from((AYA, KITE)),
        st.sampled_from(("active", "active", "active", "archived")),
        st.sampled_from((0.0, 0.01, 0.049, 0.05, 0.06, 1.0, 10.0)),
    ),
    max_size=20,
).map(lambda rows: [(f"t{number:02}", *row) for number, row in enumerate(rows)])
policies = st.tuples(st.integers(0, 6), st.integers(1, 8)).map(
    lambda limits: Policy(topic_count_soft_limit=min(limits), max_active_topics=max(1, *limits))
)


def policy(soft: int = 3, bound: int = 100, **more: Any) -> Policy:
    return Policy(topic_count_soft_limit=soft, max_active_topics=bound, **more)


def frame(rows: list[Topic]) -> pl.DataFrame:
    return pl.DataFrame(rows, orient="row", schema=SCHEMA)


def of_scope(scope: str, *saliences: float) -> list[Topic]:
    return [(f"{scope}/{number}", scope, "active", value) for number, value in enumerate(saliences)]


def archived(rows: list[Topic], policy: Policy) -> list[str]:
    return to_archive(frame(rows), policy).filter(pl.col("reason").is_not_null())["topic_id"].sort().to_list()


def by_the_rules(rows: list[Topic], policy: Policy) -> list[str]:
    gone = set()
    for scope in {row[1] for row in rows}:
        left = sorted((salience, topic) for topic, of, state, salience in rows if of == scope and state == "active")
        if len(left) >= policy.topic_count_soft_limit:
            gone |= {topic for salience, topic in left if salience < policy.forget_salience_threshold}
            left = [(salience, topic) for salience, topic in left if topic not in gone]
        while len(left) > policy.max_active_topics:
            gone.add(left.pop(0)[1])
    return sorted(gone)


@given(topics, policies)
def test_it_archives_what_the_rules_say(rows: list[Topic], policy: Policy) -> None:
    assert archived(rows, policy) == by_the_rules(rows, policy)


@given(topics, policies)
def test_afterwards_the_bound_holds_and_nothing_more_is_due(rows: list[Topic], policy: Policy) -> None:
    gone = set(archived(rows, policy))
    after = [row for row in rows if row[0] not in gone]
    for scope in (AYA, KITE):
        assert sum(row[1] == scope and row[2] == "active" for row in after) <= policy.max_active_topics
    assert archived(after, policy) == []


def test_below_the_soft_limit_nothing_goes() -> None:
    assert archived(of_scope(AYA, 0.0, 0.0), policy(soft=3)) == []


def test_from_the_soft_limit_on_the_faded_go() -> None:
    assert archived(of_scope(AYA, 0.0, 0.049, 0.05), policy(soft=3)) == [f"{AYA}/0", f"{AYA}/1"]


def test_over_the_bound_the_lowest_go_whatever_their_salience() -> None:
    ranked = to_archive(frame(of_scope(AYA, 9.0, 3.0, 1.0, 10.0)), policy(soft=1, bound=2))
    gone = ranked.filter(pl.col("reason").is_not_null())
    assert gone["topic_id"].to_list() == [f"{AYA}/2", f"{AYA}/1"]
    assert gone["reason"].to_list() == ["the scope has 4 active topics, over the bound of 2"] * 2


def test_the_faded_count_towards_the_bound() -> None:
    assert archived(of_scope(AYA, 0.0, 3.0, 1.0), policy(soft=1, bound=2)) == [f"{AYA}/0"]


def test_the_reason_gives_the_figures() -> None:
    reason = to_archive(frame(of_scope(AYA, 0.01)), policy(soft=1))["reason"].item()
    assert reason == "salience 0.01 is below 0.05 and the scope has 1 active topics"


def test_scopes_do_not_press_on_each_other() -> None:
    assert archived([*of_scope(AYA, 0.0, 0.0), *of_scope(KITE, 0.0)], policy(soft=3)) == []
    assert archived([*of_scope(AYA, 0.0, 0.0, 1.0), *of_scope(KITE, 0.0)], policy(soft=3)) == [f"{AYA}/0", f"{AYA}/1"]


def test_what_is_archived_already_neither_counts_nor_goes() -> None:
    rows: list[Topic] = [*of_scope(AYA, 0.0, 0.0), ("old", AYA, "archived", 0.0)]
    assert archived(rows, policy(soft=3)) == []
    assert "old" not in to_archive(frame(rows), policy(soft=1))["topic_id"]


def test_equal_saliences_go_by_id() -> None:
    assert archived(of_scope(AYA, 1.0, 1.0, 1.0), policy(soft=1, bound=2)) == [f"{AYA}/0"]


def test_archiving_and_restoring_reach_the_graph_and_the_record(tmp_path: Any) -> None:
    """`old` was archived and is named by new evidence; `faded` is left alone and goes."""
    run = begin(tmp_path / "run", topic_count_soft_limit=1)
    state = folded([observation(1, topic_id="old"), observation(2, topic_id="faded"), observation(3, topic_id="dear")])
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
        graph.update(TOPIC, pl.DataFrame({"id": ["old"], "state": ["archived"], "archived": [True]}))
    run.keep_table("links", state.links)
    saliences = frame([("old", AYA, "archived", 0.3), ("faded", AYA, "active", 0.01), ("dear", AYA, "active", 4.0)])
    result = forget(run, saliences, pl.DataFrame({"evidence_id": ["e01"]}))
    with open_graph(run.graph, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        states = {row[0]: row[1:] for row in graph.read(TOPIC, ["id", "state", "archived"]).iter_rows()}
    assert states == {"old": ("active", False), "faded": ("archived", True), "dear": ("active", False)}
    assert set(result.frame.select("topic_id", "change").iter_rows()) == {("old", "restored"), ("faded", "archived")}
    assert result.counts == {"archived": 1, "restored": 1, "summarised": 0, "detached": 0}
    assert result.frame.schema == CHANGES
    assert result.decisions is not None
    assert result.decisions.schema == DECISION
