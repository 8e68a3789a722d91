"""What is archived: topics that a rule selects, faded ones under pressure, the lowest over the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget.archiving import to_archive
from memstate_core.policy.settings import Policy

Topic = dict[str, Any]
Depends = tuple[str, str]
"""A base, and what depends on it."""

SCHEMA = {
    "topic_id": pl.String, "scope": pl.String, "state": pl.String, "salience": pl.Float64, "retention": pl.Float64,
    "active": pl.Int64, "rule": pl.String, "action": pl.String, "theta_archive": pl.Float64,
    "theta_detach": pl.Float64,
    **dict.fromkeys(("pressure", "pinned", "held", "accessed", "depended_on", "redundant"), pl.Boolean),
}  # fmt: skip
AYA, KITE = "user:aya", "project:kite"
rarely = st.sampled_from((False, False, False, True))
topics = st.lists(
    st.fixed_dictionaries(
        {
            "scope": st.sampled_from((AYA, AYA, KITE)),
            "state": st.sampled_from(("active", "active", "active", "archived")),
            "salience": st.sampled_from((0.0, 0.01, 0.049, 0.05, 0.06, 0.1, 10.0)),
            "action": st.sampled_from((None, None, None, None, "archive", "detach")),
            **dict.fromkeys(("pinned", "held", "accessed", "redundant"), rarely),
        }
    ),
    max_size=12,
).map(lambda rows: [topic(f"t{number:02}", **row) for number, row in enumerate(rows)])
ties = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=10).map(
    lambda pairs: [(f"t{base:02}", f"t{dependent:02}") for base, dependent in pairs if base != dependent]
)
policies = st.tuples(st.integers(0, 6), st.integers(1, 8), st.integers(1, 3)).map(
    lambda limits: policy(min(limits[:2]), max(1, *limits[:2]), dependency_max_hops=limits[2])
)


def policy(soft: int = 3, bound: int = 100, **more: Any) -> Policy:
    return Policy(topic_count_soft_limit=soft, max_active_topics=bound, **more)


def topic(topic_id: str, **given: Any) -> Topic:
    plain = {"scope": AYA, "state": "active", "salience": 1.0, "theta_archive": 0.05, "theta_detach": 0.1}
    row = dict.fromkeys(SCHEMA, False) | {"rule": None, "action": None} | plain | {"topic_id": topic_id} | given
    ruled = {"rule": "a rule"} if row["action"] else {}
    return row | ruled | {"retention": given.get("retention", row["salience"])}


def low(*names: str, **given: Any) -> list[Topic]:
    return [topic(name, salience=0.01, **given) for name in names]


def frame(rows: Sequence[Topic], policy: Policy, dependence: Sequence[Depends] = ()) -> pl.DataFrame:
    """Topics with the features that follow from all of them together."""
    active = pl.col("state") == "active"
    table = pl.DataFrame(list(rows), schema=SCHEMA, orient="row")
    living = table.filter(active)["topic_id"].to_list()
    bases = [base for base, dependent in dependence if dependent in living]
    count = active.sum().cast(pl.Int64).over("scope")
    return table.with_columns(
        active=count, pressure=count >= policy.topic_count_soft_limit, depended_on=pl.col("topic_id").is_in(bases)
    )


def ranked(rows: Sequence[Topic], policy: Policy, dependence: Sequence[Depends] = ()) -> pl.DataFrame:
    tied = pl.DataFrame(list(dependence), schema={"base": pl.String, "dependent": pl.String}, orient="row")
    return to_archive(frame(rows, policy, dependence), tied, policy)


def archived(rows: Sequence[Topic], policy: Policy, *dependence: Depends) -> list[str]:
    return ranked(rows, policy, dependence).filter(pl.col("reason").is_not_null())["topic_id"].sort().to_list()


def by_the_rules(rows: Sequence[Topic], policy: Policy, dependence: Sequence[Depends]) -> list[str]:
    """The same, topic by topic."""
    active = {row["topic_id"]: row for row in rows if row["state"] == "active"}
    ruled = {name for name, row in active.items() if row["action"] == "archive" and not row["pinned"]}
    count = {scope: sum(row["scope"] == scope for row in active.values()) for scope in (AYA, KITE)}
    pressed = {scope for scope, number in count.items() if number >= policy.topic_count_soft_limit}
    faded = {
        name
        for name, row in active.items()
        if row["scope"] in pressed
        and row["salience"] < row["theta_detach" if row["redundant"] else "theta_archive"]
        and not (row["pinned"] or row["held"] or row["accessed"] or row["action"])
    }
    reach = set(active) - ruled - faded
    for _ in range(policy.dependency_max_hops):
        reach = {base for base, dependent in dependence if dependent in reach and base in faded}
        faded -= reach
    gone, bases = ruled | faded, {base for base, dependent in dependence if dependent in active}
    for scope in (AYA, KITE):
        left = [row for name, row in active.items() if row["scope"] == scope and name not in gone]
        movable = sorted((row for row in left if not row["pinned"]), key=lambda row: _order(row, bases))
        gone |= {row["topic_id"] for row in movable[: max(0, len(left) - policy.max_active_topics)]}
    return sorted(gone)


def _order(row: Topic, bases: set[str]) -> tuple[int, float, str]:
    tier = 3 if row["held"] else 2 if row["topic_id"] in bases else 0 if row["redundant"] else 1
    return tier, row["retention"], row["topic_id"]


@given(topics, policies, ties)
def test_it_matches_the_same_rules_evaluated_topic_by_topic(
    rows: list[Topic], policy: Policy, dependence: list[Depends]
) -> None:
    assert archived(rows, policy, *dependence) == by_the_rules(rows, policy, dependence)


@given(topics, policies, ties)
def test_the_bound_holds_afterwards_but_for_what_is_pinned(
    rows: list[Topic], policy: Policy, dependence: list[Depends]
) -> None:
    gone = archived(rows, policy, *dependence)
    left = [row for row in rows if row["state"] == "active" and row["topic_id"] not in gone]
    for scope in (AYA, KITE):
        mine = [row for row in left if row["scope"] == scope]
        assert len(mine) <= max(policy.max_active_topics, sum(row["pinned"] for row in mine))
    assert not any(row["pinned"] for row in rows if row["topic_id"] in gone)


@pytest.mark.slow
@given(topics, policies, ties, st.randoms(use_true_random=False))
def test_the_order_of_topics_does_not_show(
    rows: list[Topic], policy: Policy, dependence: list[Depends], chance: Any
) -> None:
    assert ranked(chance.sample(rows, len(rows)), policy, dependence).equals(ranked(rows, policy, dependence))


# Pressure


def test_below_the_soft_limit_nothing_is_archived_and_from_it_on_faded_topics_are() -> None:
    assert archived(low("a", "b"), policy(3)) == []
    edge = [topic("a", salience=0.049), topic("b", salience=0.05), topic("c", salience=0.0)]
    assert archived(edge, policy(3)) == ["a", "c"]


def test_scopes_do_not_press_on_each_other_and_the_archived_neither_count_nor_go() -> None:
    rows = [*low("a", "b"), *low("k", scope=KITE), *low("old", state="archived")]
    assert archived(rows, policy(3)) == []
    assert "old" not in ranked(rows, policy(1))["topic_id"]


def test_pinned_held_and_used_topics_do_not_fade() -> None:
    rows = [*low("a", pinned=True), *low("b", held=True), *low("c", accessed=True), *low("d")]
    assert archived(rows, policy(1)) == ["d"]


def test_superseded_topics_are_archived_sooner() -> None:
    rows = [topic("new"), topic("old", salience=0.07, redundant=True), topic("other", salience=0.07)]
    found = ranked(rows, policy(1)).filter(pl.col("reason").is_not_null())
    assert found.select("topic_id", "by").rows() == [("old", "threshold")]
    assert (
        found["reason"]
        .item()
        .endswith("is below 0.1 and the scope has 3 active topics and a newer topic supersedes it")
    )


# What others depend on


def test_a_faded_topic_stays_with_what_depends_on_it_over_several_hops() -> None:
    rows = [topic("clause"), *low("term", "deal", "lone")]
    chain = (("term", "clause"), ("deal", "term"))
    assert archived(rows, policy(1), *chain) == ["lone"]
    assert archived(rows, policy(1, dependency_max_hops=1), *chain) == ["deal", "lone"]


def test_a_topic_that_only_faded_ones_depend_on_is_archived_with_them_even_in_a_cycle() -> None:
    rows = [topic("x"), *low("a", "b")]
    assert archived(rows, policy(1), ("a", "b"), ("b", "a")) == ["a", "b"]


# The bound


def test_over_the_bound_the_lowest_go_whatever_their_salience_and_the_faded_count() -> None:
    rows = [topic(name, salience=value) for name, value in zip("abcd", (9.0, 3.0, 1.0, 10.0), strict=True)]
    gone = ranked(rows, policy(1, 2)).filter(pl.col("reason").is_not_null())
    assert gone["topic_id"].to_list() == ["c", "b"]
    assert gone["reason"].to_list() == ["the scope has 4 active topics, over the bound of 2"] * 2
    assert set(gone["by"]) == {"bound"}
    assert archived([topic("a", salience=0.0), topic("b"), topic("c")], policy(1, 2)) == ["a"]


def test_the_eviction_order_is_superseded_then_others_then_depended_on_then_restored_by_a_person() -> None:
    rows = [
        topic("held", salience=1.0, held=True), topic("base", salience=2.0), topic("plain", salience=3.0),
        topic("old", salience=4.0, redundant=True), topic("dear", salience=9.0),
    ]  # fmt: skip
    order = ["old", "plain", "dear", "base", "held"]
    for room in range(1, 5):
        assert archived(rows, policy(1, room), ("base", "dear")) == sorted(order[: 5 - room])


def test_retention_orders_within_a_tier_and_ties_fall_to_the_id() -> None:
    rows = [topic("a", retention=3.0), topic("b", retention=1.0), topic("c", retention=1.0)]
    assert archived(rows, policy(1, 2)) == ["b"]
    assert archived([topic(name) for name in "cab"], policy(1, 2)) == ["a"]


def test_use_is_no_shield_against_the_bound() -> None:
    assert archived([topic("a", accessed=True), topic("b", salience=2.0)], policy(1, 1)) == ["a"]


# Rules


def test_a_rule_archives_without_pressure_what_is_not_pinned() -> None:
    rows = [topic("a", action="archive"), topic("b", action="archive", pinned=True), topic("c")]
    found = ranked(rows, policy(100)).filter(pl.col("reason").is_not_null())
    assert found.select("topic_id", "by", "reason").rows() == [("a", "rule", "rule a rule asks for it")]


def test_a_rule_with_another_action_keeps_a_faded_topic() -> None:
    assert archived([*low("a", action="summarise"), *low("b")], policy(1)) == ["b"]


def test_the_reason_gives_the_figures_and_an_empty_store_has_none() -> None:
    reason = ranked(low("a"), policy(1))["reason"].item()
    assert reason == "salience 0.01 is below 0.05 and the scope has 1 active topics"
    assert ranked([], policy(0)).is_empty()
