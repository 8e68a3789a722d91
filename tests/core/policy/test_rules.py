"""Rules: the first that fits governs, events concern the topics they name, pairs have the bands of their rule."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from memstate_core.policy.merge_bands import pair_bands, rule_bands
from memstate_core.policy.rules import EVENT_COLUMNS, RULE_COLUMNS, Rule, applicable_merge_rules, governing
from memstate_core.policy.settings import Override, Policy
from tests.core.policy.frames import topics

DEFAULT = (0.9, 0.5)


def rule(name: str = "r", when: str = "true", do: str = "pin", on: str = "nightly", **bands: Any) -> Rule:
    return Rule.model_validate({"name": name, "on": on, "when": when, "do": do} | bands)


def merging(name: str, when: str, merge: float | None = 0.95, review: float | None = None, **said: Any) -> Rule:
    return rule(name, when, "merge", merge_probability=merge, review_probability=review, **said)


def governed(frame: pl.DataFrame, *rules: Rule) -> list[tuple[str | None, str | None]]:
    return governing(frame, rules).select("rule", "action").rows()


def refused(**said: Any) -> str:
    with pytest.raises(ValidationError) as error:
        Rule.model_validate({"name": "r", "on": "nightly", "when": "true", "do": "pin"} | said)
    return str(error.value)


# Which rule governs


def test_the_first_rule_that_fits_governs_and_the_rest_do_not() -> None:
    frame = topics({"salience": 0.1}, {"salience": 0.3}, {"salience": 0.3, "topic_kind": None})
    rules = [rule("low", "salience < 0.2"), rule("deals", "topic_kind == 'deal' or salience < 0.2", "detach")]
    assert governed(frame, *rules) == [("low", "pin"), ("deals", "detach"), (None, None)]
    assert governed(frame, *reversed(rules)) == [("deals", "detach"), ("deals", "detach"), (None, None)]


def test_the_columns_of_topics_stay_and_without_rules_none_governs() -> None:
    frame = topics({}, {})
    result = governing(frame, [])
    assert result.drop("rule", "action").equals(frame)
    assert result.schema["rule"] == result.schema["action"] == pl.String
    assert result.select("rule", "action").rows() == [(None, None)] * 2


def test_an_empty_frame_has_the_same_columns() -> None:
    for rules in ([], [rule()], [rule(on="ingest_complete"), merging("m", "true")]):
        assert governing(topics(), rules).schema == governing(topics({}), rules).schema
        assert applicable_merge_rules(topics(), rules).schema == applicable_merge_rules(topics({}), rules).schema


@pytest.mark.parametrize(("event", "column"), EVENT_COLUMNS.items())
def test_an_event_concerns_the_topics_of_its_column(event: str, column: str) -> None:
    frame = topics({column: True}, {column: False}, {column: None})
    assert governed(frame, rule(on=event)) == [("r", "pin"), (None, None), (None, None)]
    assert governed(frame, rule()) == [("r", "pin")] * 3


def test_an_event_that_does_not_concern_a_topic_leaves_it_to_later_rules() -> None:
    frame = topics({"has_new_evidence": False})
    assert governed(frame, rule("imported", on="ingest_complete"), rule("all", do="archive")) == [("all", "archive")]


def test_merge_rules_govern_nothing() -> None:
    assert governed(topics({}), merging("m", "true"), rule("later")) == [("later", "pin")]


def test_a_missing_column_is_named_with_the_rule_that_needs_it() -> None:
    frame = topics({}).drop("accessed", "salience", "title")
    needy = rule("r", "salience < 1 or title == 'a'", on="query_complete")
    said = re.escape(
        "rule 'r' needs columns that the frame of topics lacks: accessed, salience, title; it has id, scope"
    )
    for evaluate, one in ((governing, needy), (applicable_merge_rules, merging("r", needy.when, on=needy.on))):
        with pytest.raises(ValueError, match=said):
            evaluate(frame, [one])
    assert governed(frame, rule("other", "active > 1")) == [("other", "pin")]


def test_every_column_is_declared_with_a_type_that_conditions_know() -> None:
    assert set(RULE_COLUMNS.values()) == {pl.String, pl.Float64, pl.Int64, pl.Boolean}
    everything = " and ".join(f"{name} != null" for name in RULE_COLUMNS)
    assert governed(topics({}), rule("all", everything)) == [("all", "pin")]


# Bands


def test_each_topic_has_the_first_merge_rule_that_fits_it_and_all_of_them() -> None:
    frame = topics({"salience": 0.1}, {"salience": 0.3}, {"scope_type": "team"})
    rules = [rule("ladder"), merging("low", "salience < 0.2"), rule("more"), merging("users", "scope_type == 'user'")]
    assert applicable_merge_rules(frame, rules).rows() == [("t-0", 1, [1, 3]), ("t-1", 3, [3]), ("t-2", None, [])]


def test_a_pair_is_under_the_first_rule_that_fits_both_though_one_has_an_earlier_one() -> None:
    frame = topics({"salience": 0.1}, {"salience": 0.3}, {"scope_type": "team"}, {"salience": 0.1})
    rules = [merging("low", "salience < 0.2", 0.8, 0.4), merging("users", "scope_type == 'user'", None, 0.7)]
    pairs = pl.DataFrame({"a": ["t-0", "t-3", "t-1", "gone"], "b": ["t-1", "t-0", "t-2", "t-0"], "x": [1, 2, 3, 4]})
    assert pair_bands(pairs, frame, rules, DEFAULT).rows() == [
        ("t-0", "t-1", 1, "users", 0.9, 0.7),
        ("t-3", "t-0", 2, "low", 0.8, 0.4),
        ("t-1", "t-2", 3, None, 0.9, 0.5),
        ("gone", "t-0", 4, None, 0.9, 0.5),
    ]


def test_without_merge_rules_every_pair_has_the_bands_of_the_policy() -> None:
    pairs = pl.DataFrame({"a": ["t-0"], "b": ["t-1"]})
    for rules in ([], [rule()]):
        assert pair_bands(pairs, topics({}, {}), rules, DEFAULT).rows() == [("t-0", "t-1", None, 0.9, 0.5)]
        assert rule_bands(rules, DEFAULT).is_empty()
    assert pair_bands(pairs.clear(), topics(), [merging("m", "true")], DEFAULT).is_empty()


def test_a_band_that_a_rule_leaves_out_is_the_policys() -> None:
    rules = [rule(), merging("a", "true", 0.95), merging("b", "true", None, 0.6)]
    assert rule_bands(rules, DEFAULT).rows() == [(1, "a", 0.95, 0.5), (2, "b", 0.9, 0.6)]


# What a rule may be


def test_what_is_not_allowed_in_a_rule() -> None:
    assert "sets merge_probability, review_probability, or both" in refused(do="merge")
    assert 'only a rule with do = "merge" has bands' in refused(merge_probability=0.9)
    assert "at column 12 of the condition: found 'x' (a string)" in refused(when="salience < 'x'")
    assert "at column 1 of the condition: found the end" in refused(when="")
    assert "at least 1 character" in refused(name="")
    assert "Input should be 'ingest_complete', 'nightly'" in refused(on="daily")
    assert "Input should be 'summarise', 'detach'" in refused(do="delete")
    assert "greater than 0.5" in refused(do="merge", merge_probability=0.5)
    assert "Extra inputs" in refused(then="pin")


def test_names_are_unique_and_bands_in_order_within_a_policy() -> None:
    with pytest.raises(ValidationError, match="another rule before it has this name"):
        Policy(rules=(rule("a"), rule("b"), rule("a")))
    with pytest.raises(ValidationError, match=r"review_probability \(0.8\) must not exceed merge_probability \(0.7\)"):
        Policy(rules=(merging("a", "true", 0.7, 0.8),))
    with pytest.raises(ValidationError, match=r"review_probability \(0.65\) must not exceed merge_probability \(0.6\)"):
        Policy(review_probability=0.65, rules=(merging("a", "true", 0.6),))
    assert Policy(rules=(merging("a", "true", 0.6),)).rules[0].bands(DEFAULT) == (0.6, 0.5)


def test_the_hash_of_a_policy_covers_its_rules_and_their_order() -> None:
    a, b = rule("a"), rule("b")
    assert len({Policy(rules=rules).digest() for rules in ((), (a,), (b,), (a, b), (b, a))}) == 5


def test_a_policy_on_record_has_its_rules_back() -> None:
    policy = Policy(rules=(rule("a", "salience < 0.5"), merging("b", "true")))
    assert Policy.recorded(policy.model_dump(mode="json")) == policy


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("scope_type == 'usr'", "found 'usr', did you mean user? expected one of global, user,"),
        ("'usr' != scope_type", "found 'usr', did you mean user? expected one of global, user,"),
        ("scope_type in ['user', 'projects']", "found 'projects', did you mean project? expected one of"),
        ("salience < 1 and state == 'actve'", "found 'actve', did you mean active? expected one of active, detached"),
        ("scope == 'usr:x'", "found 'usr:x', did you mean user:x? expected TYPE:ID with a type of"),
        ("scope == 'aya'", "found 'aya', expected TYPE:ID with a type of"),
    ],
)
def test_a_word_that_a_column_never_has_is_refused(when: str, said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        Rule(name="r", on="nightly", when=when, do="pin")


@pytest.mark.parametrize("when", ["scope_type == 'user'", "state != 'archived'", "scope == 'user:x'", "title == 'usr'"])
def test_words_that_a_column_may_have_are_accepted(when: str) -> None:
    assert Rule(name="r", on="nightly", when=when, do="pin").when == when


@pytest.mark.parametrize(
    ("scope", "said"),
    [("usr:x", "did you mean user:x?"), ("global", "expected 'global:global'"), ("user:", "expected TYPE:ID")],
)
def test_an_override_names_a_scope_that_there_can_be(scope: str, said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        Override(scope=scope, salience_half_life_days=1)


def test_what_an_earlier_version_recorded_is_still_read() -> None:
    rule = {"name": "r", "on": "nightly", "when": "scope_type == 'usr'", "do": "pin"}
    policy = Policy.recorded({"overrides": [{"scope": "usr:x", "salience_half_life_days": 1.0}], "rules": [rule]})
    assert (policy.overrides[0].scope, policy.rules[0].when) == ("usr:x", "scope_type == 'usr'")
