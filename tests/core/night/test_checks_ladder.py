"""What C2 says of the ladder: marks follow recorded words, and policy must ask for every archiving."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Override
from memstate_core.state.graph import EDGE, FIELD, Graph
from tests.core.night import test_checks as checks
from tests.core.night.test_checks import Night

sound, night = checks.sound, checks.night
UNMARKED = "what is detached follows from no recorded decision"


def detach_field(graph: Graph) -> None:
    found = graph.read(FIELD, ["id"], "r.topic_id = 'deal' AND r.name = 'stage'")
    graph.update(FIELD, found.with_columns(detached=pl.lit(True)))


def detach_link(graph: Graph) -> None:
    mentions = graph.read(EDGE, where="r.kind = 'mentions'")
    graph.delete(EDGE, mentions.select(EDGE.key))
    graph.insert(EDGE, mentions.with_columns(detached=pl.lit(True)))


def said(kind: str, topic: str, payload: dict[str, Any]) -> pl.DataFrame:
    return checks.archived(topic, 0).with_columns(kind=pl.lit(kind), payload_json=pl.lit(json.dumps(payload)))


DETACHED = {
    "a field": (detach_field, "deal", {"fields": ["stage"]}),
    "a link": (detach_link, "term", {"edges": [{"to": "lone", "kind": "mentions"}]}),
}


@pytest.mark.parametrize(("damage", "topic", "payload"), DETACHED.values(), ids=DETACHED)
def test_what_is_detached_needs_a_decision_that_was_not_taken_back(
    night: Night, damage: Callable[[Graph], None], topic: str, payload: dict[str, Any]
) -> None:
    night.damage(damage)
    assert night.violations() == {"C2": {(topic, UNMARKED)}}
    night.decisions = pl.concat([night.decisions, said("detached", topic, payload)])
    assert night.violations() == {}
    night.decisions = pl.concat([night.decisions, said("attached", topic, payload)])
    assert night.violations() == {"C2": {(topic, UNMARKED)}}


@pytest.mark.parametrize(("topic", "payload"), [row[1:] for row in DETACHED.values()], ids=DETACHED)
def test_a_decision_to_detach_must_show_in_the_graph(night: Night, topic: str, payload: dict[str, Any]) -> None:
    night.decisions = pl.concat([night.decisions, said("detached", topic, payload)])
    assert list(night.violations()) == ["C2"]


@pytest.mark.parametrize("by", ["threshold", "bound", "rule", "evidence", None])
def test_archiving_says_what_asked_for_it_and_policy_must_agree(night: Night, by: str | None) -> None:
    """The scope is at its bound and under pressure, and no rule archives."""
    night.run.decide("forgetting", said("archived", "faded", {"salience": 0.01, "by": by, "active": checks.ACTIVE + 1}))
    asked = by in ("threshold", "bound")
    assert night.violations() == ({} if asked else {"C2": {("faded", checks.AGAINST_POLICY)}})


def test_a_rule_that_archives_is_asked_for_by_policy(night: Night) -> None:
    rule = Rule(name="old", on="nightly", when="salience < 1", do="archive")
    night.run.policy = night.run.policy.model_copy(update={"rules": (rule,)})
    night.run.decide("forgetting", said("archived", "faded", {"salience": 7.0, "by": "rule"}))
    assert night.violations() == {}


@pytest.mark.parametrize("pin", ["pinned", "kind"])
def test_what_is_pinned_may_not_be_archived(night: Night, pin: str) -> None:
    night.damage(
        checks.set_topic("faded", pinned=True) if pin == "pinned" else checks.set_topic("faded", topic_kind="deal")
    )
    night.run.policy = night.run.policy.model_copy(update={"pinned_kinds": ("deal",)})
    assert night.violations() == {"C2": {("faded", checks.AGAINST_POLICY)}}


def test_an_override_of_the_scope_sets_the_threshold_of_archiving(night: Night) -> None:
    night.run.decide(
        "forgetting", said("archived", "faded", {"salience": 0.5, "by": "threshold", "active": checks.ACTIVE + 1})
    )
    assert night.violations() == {"C2": {("faded", checks.AGAINST_POLICY)}}
    override = Override(scope=checks.AYA, detach_salience_threshold=0.6)
    night.run.policy = night.run.policy.model_copy(update={"overrides": (override,)})
    assert night.violations() == {}
