"""Explanations: the values in force, their origin, and the next event."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.policy.explain import explain_topic
from memstate_core.policy.overrides import value_for
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Override, Policy
from tests.core.policy.frames import topic, topics


def rule(name: str, when: str = "true", do: str = "pin", on: str = "nightly", **bands: Any) -> Rule:
    return Rule.model_validate({"name": name, "on": on, "when": when, "do": do} | bands)


def explained(policy: Policy | None = None, **said: Any) -> dict[str, Any]:
    facts = explain_topic(topic(**said), policy or Policy())
    assert json.loads(json.dumps(facts)) == facts
    return facts


def lines(policy: Policy | None = None, **said: Any) -> str:
    return "\n".join(explained(policy, **said)["lines"])


# What governs it


def test_without_a_rule_the_ladder_applies() -> None:
    facts = explained()
    assert (facts["rule"], facts["waiting"], facts["merge_rules"], facts["pinned"]) == (None, [], [], None)
    assert "No rule governs it, so the built-in ladder applies." in facts["lines"]


def test_the_rule_that_governs_is_shown_in_full() -> None:
    facts = explained(Policy(rules=(rule("no", "false"), rule("low", "salience < 0.5", "detach"), rule("late"))))
    assert facts["rule"] == {"name": "low", "on": "nightly", "when": "salience < 0.5", "do": "detach"}
    assert facts["waiting"] == []
    assert "Rule 'low' governs it (nightly, detach): salience < 0.5" in facts["lines"]


def test_rules_that_wait_for_their_event_are_named_if_they_would_come_before() -> None:
    policy = Policy(
        rules=(rule("imported", on="ingest_complete"), rule("all", do="archive"), rule("x", on="query_complete"))
    )
    facts = explained(policy)
    assert (facts["rule"]["name"], [one["name"] for one in facts["waiting"]]) == ("all", ["imported"])
    assert "Rule 'imported' (pin) would govern it in a run in which ingest_complete concerns it." in facts["lines"]
    assert explain_topic(topics({}), policy)["rule"]["name"] == "imported"


def test_pressure_follows_from_the_active_topics_unless_it_is_given() -> None:
    policy = Policy(rules=(rule("pressed", do="archive", on="memory_pressure"),))
    assert explained(policy, active=500)["rule"]["name"] == "pressed"
    assert explained(policy, active=499)["rule"] is None
    assert explain_topic(topics({"active": 1}), policy)["pressure"]["under"] is True


def test_merge_rules_that_fit_are_named() -> None:
    rules = (rule("m", do="merge", merge_probability=0.95), rule("n", "false", "merge", merge_probability=0.95))
    facts = explained(Policy(rules=rules))
    assert (facts["rule"], facts["merge_rules"]) == (None, ["m"])
    assert "Merge rule 'm' fits it." in facts["lines"]


# Values in force


def test_each_value_has_its_key_and_its_source() -> None:
    overrides = (Override(topic_kind="deal", detach_salience_threshold=0.15), Override(scope="user:ben"))
    values = explained(Policy(salience_half_life_days=30, overrides=overrides))["values"]
    assert values == {
        "half_life": {"key": "salience_half_life_days", "value": 30, "source": "policy"},
        "summarise": {"key": "summarise_salience_threshold", "value": 0.2, "source": "default"},
        "detach": {"key": "detach_salience_threshold", "value": 0.15, "source": "policy.overrides[0]"},
        "archive": {"key": "forget_salience_threshold", "value": 0.05, "source": "default"},
    }


names = st.none() | st.sampled_from(("user:aya", "user:ben"))
kinds = st.none() | st.sampled_from(("deal", "person"))
overrides = st.builds(
    lambda scope, kind, value: Override(
        scope=scope if scope or kind else "user:aya", topic_kind=kind, salience_half_life_days=value
    ),
    names,
    kinds,
    st.none() | st.integers(1, 99).map(float),
)


@given(st.lists(overrides, max_size=4), kinds)
def test_the_source_is_the_override_whose_value_holds(several: list[Override], kind: str | None) -> None:
    policy = Policy(overrides=tuple(several))
    found = explained(policy, topic_kind=kind)["values"]["half_life"]
    assert found["value"] == topic(topic_kind=kind).select(value_for(found["key"], policy)).item()
    if found["source"] == "default":
        assert found["value"] == policy.salience_half_life_days
    else:
        position = int(found["source"].removeprefix("policy.overrides[").removesuffix("]"))
        assert several[position].salience_half_life_days == found["value"]


# What comes next


def test_the_explanation_of_a_fading_topic_names_time_and_condition() -> None:
    facts = explained(salience=0.4, half_life_days=40.0)
    assert (facts["archive_below"], facts["archive_in_days"]) == (0.05, pytest.approx(120))
    assert facts["lines"][-1] == (
        "It is archived once its salience (now 0.4) falls below 0.05, in about 120 days without accesses,"
        " and only while the scope has 500 or more active topics."
    )


def test_a_faded_topic_waits_for_pressure_only() -> None:
    facts = explained(salience=0.04, active=10)
    assert (facts["archive_in_days"], facts["pressure"]["under"]) == (0, False)
    assert "It is archived as its salience (now 0.04) is below 0.05, and only while" in facts["lines"][-1]
    assert "10 active topics and is not under pressure, which begins at 500" in facts["lines"][-2]


def test_what_is_superseded_goes_below_the_threshold_of_detaching() -> None:
    assert explained(redundant=True, salience=0.2, half_life_days=7.0)["archive_in_days"] == pytest.approx(7)


def test_what_others_depend_on_stays_with_them() -> None:
    assert lines(depended_on=True).endswith("500 or more active topics and no active topic depends on it.")


@pytest.mark.parametrize(
    ("policy", "said", "by"),
    [
        (Policy(pinned_kinds=("deal",)), {}, "policy.pinned_kinds"),
        (Policy(rules=(rule("keep"),)), {}, "rule 'keep'"),
    ],
)
def test_what_is_pinned_stays(policy: Policy, said: dict[str, Any], by: str) -> None:
    facts = explained(policy, **said)
    assert facts["pinned"] == by
    assert f"It is pinned by {by}." in facts["lines"]
    assert facts["lines"][-1] == "It stays as it is: pinned topics are never archived."


def test_a_recorded_pin_is_explained_if_the_frame_has_it() -> None:
    assert explain_topic(topic().with_columns(pinned=True), Policy())["pinned"] == "a recorded decision"
    assert explain_topic(topic().with_columns(pinned=pl.lit(None)), Policy())["pinned"] is None


def test_the_kind_is_said_not_to_be_pinned() -> None:
    assert "Its kind 'deal' is not pinned." in lines()
    assert "It has no kind, which is not pinned." in lines(topic_kind=None)


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("archive", "It is archived in the next run, since rule 'r' asks for it."),
        ("summarise", "In the next run its fields are summarised; while rule 'r' governs it"),
        ("detach", "In the next run its fields and edges are detached; while rule 'r' governs it"),
    ],
)
def test_a_rule_says_what_comes_next(do: str, said: str) -> None:
    assert said in lines(Policy(rules=(rule("r", do=do),)))


def test_the_explanation_of_an_archived_topic_names_how_it_is_restored() -> None:
    assert lines(state="archived").endswith("It is archived; new evidence or an access restores it.")


def test_over_the_bound_the_surplus_is_counted() -> None:
    facts = explained(Policy(max_active_topics=590), active=600)
    held = {"active": 600, "soft_limit": 500, "bound": 590, "under": True, "pinned": 0, "surplus": 10}
    assert facts["pressure"] == held
    assert (
        facts["lines"][-1]
        == "Its scope is over the bound: the first 10 topics in eviction order are archived in the next run."
    )


def test_pins_beyond_the_bound_stay_and_the_explanation_says_so() -> None:
    facts = explain_topic(topic(active=600).with_columns(pinned_topics=597), Policy(max_active_topics=590))
    assert (facts["pressure"]["pinned"], facts["pressure"]["surplus"]) == (597, 3)
    assert "the bound is 590 (max_active_topics), which its 597 pinned topics exceed." in " ".join(facts["lines"])


def test_a_threshold_of_zero_archives_nothing() -> None:
    facts = explained(Policy(forget_salience_threshold=0))
    assert facts["archive_in_days"] is None
    assert facts["lines"][-1] == "It is archived only over the bound, since its threshold is 0."
    assert explained(salience=0.05)["archive_in_days"] == 0
    assert "once its salience (now 0.05) falls below 0.05, in about 0 days" in lines(salience=0.05)


def test_values_that_are_missing_do_not_stop_it() -> None:
    facts = explained(salience=None, half_life_days=None, depended_on=None, redundant=None, title=None)
    assert (facts["salience"], facts["archive_in_days"]) == (0, 0)


def test_one_row_is_expected() -> None:
    with pytest.raises(ValueError, match="expected the row of one topic, found 2 rows"):
        explain_topic(topics({}, {}), Policy())
