"""Explains a topic: which rule governs it, which policy values apply to it, and what the next night would do."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memstate_core.model.forms.registry import FORMS
from memstate_core.policy.explanation_text import explanation_lines
from memstate_core.policy.overrides import value_for
from memstate_core.policy.rules import applicable_merge_rules, governing
from memstate_core.policy.settings import Policy

_KEYS = {
    "half_life": "salience_half_life_days",
    "summarise": "summarise_salience_threshold",
    "detach": "detach_salience_threshold",
    "archive": "forget_salience_threshold",
}


def explain_topic(topic: pl.DataFrame, policy: Policy) -> dict[str, Any]:
    """Explains one topic.

    Args:
        topic: one row with column id and RULE_COLUMNS. Optional columns: the event columns `has_new_evidence`,
            `accessed` and `pressure` (by default no new evidence, no access, and pressure as the number of active
            topics implies);
            `pinned` (a recorded decision pinned the topic); `pinned_topics` (pinned active topics of its scope).
        policy: the policy.

    Returns:
        Plain data: `id`, `title`, `scope`, `topic_kind`, `state`, `salience`, `half_life_days`; `rule` (name, on,
        when, do of the rule that governs it, or null); `waiting` (earlier rules whose condition is true, but whose
        event does not concern it); `merge_rules` (names of those that apply); `values` (for half_life, summarise,
        detach and archive: `key`, `value`, and `source`, which is default, policy, or an override); `archive_below`
        (the threshold that applies: that of detaching if a newer topic supersedes it); `archive_in_days` (days until
        its salience falls below that without accesses: 0 if it is below, null if it never will be); `pinned` (what
        pins it, or null); `pressure` (`active`, `soft_limit`, `bound`, `under`, `pinned`, `surplus`); and `lines`,
        the explanation as sentences.

    Raises:
        ValueError: there is not one row, or a column is missing.
    """
    if topic.height != 1:
        raise ValueError(f"expected the row of one topic, found {topic.height} rows")
    row = governing(_with_events(topic, policy), policy.rules).row(0, named=True)
    facts = {name: row[name] for name in ("id", "title", "scope", "topic_kind", "state")}
    facts |= {name: float(row[name] or 0.0) for name in ("salience", "half_life_days")}
    facts |= _rules(topic, row["rule"], policy) | {"values": _values(topic, policy)}
    facts |= _fading(row, facts) | {"pinned": _pinned_by(row, policy), "pressure": _pressure(row, policy)}
    facts |= {"depended_on": bool(row["depended_on"]), "redundant": bool(row["redundant"])}
    return facts | {"lines": explanation_lines(facts)}


def _with_events(topic: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    assumed = {
        "has_new_evidence": pl.lit(False),
        "accessed": pl.lit(False),
        "pressure": pl.col("active") >= policy.topic_count_soft_limit,
    }
    return topic.with_columns(**{name: value for name, value in assumed.items() if name not in topic.columns})


def _rules(topic: pl.DataFrame, name: str | None, policy: Policy) -> dict[str, Any]:
    ladder = [rule for rule in policy.rules if rule.do != "merge"]
    place = next((place for place, rule in enumerate(ladder) if rule.name == name), len(ladder))
    waiting = [rule for rule in ladder[:place] if topic.select(rule.holds()).item()]
    shown = [rule.model_dump(include={"name", "on", "when", "do"}) for rule in (*ladder[place : place + 1], *waiting)]
    merging = applicable_merge_rules(_with_events(topic, policy), policy.rules)["merge_rules"].item().to_list()
    return {
        "rule": shown.pop(0) if place < len(ladder) else None,
        "waiting": shown,
        "merge_rules": [policy.rules[position].name for position in merging],
    }


def _values(topic: pl.DataFrame, policy: Policy) -> dict[str, dict[str, Any]]:
    values = topic.select(**{name: value_for(key, policy) for name, key in _KEYS.items()}).row(0, named=True)
    row = topic.row(0, named=True)
    return {
        name: {"key": key, "value": values[name], "source": _source(key, row, policy)} for name, key in _KEYS.items()
    }


def _source(key: str, row: dict[str, Any], policy: Policy) -> str:
    """The origin of the value that `value_for` returns."""
    for position, override in reversed(list(enumerate(policy.overrides))):
        named = override.model_dump(include={"scope", "topic_kind"}, exclude_none=True)
        if getattr(override, key) is not None and all(row[column] == value for column, value in named.items()):
            return f"policy.overrides[{position}]"
    return "default" if getattr(policy, key) == getattr(Policy(), key) else "policy"


def _fading(row: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    limit = facts["values"]["detach" if row["redundant"] else "archive"]["value"]
    salience, half_life = facts["salience"], facts["half_life_days"]
    if salience < limit:
        days: float | None = 0.0
    else:
        days = half_life * math.log2(salience / limit) if limit else None
    return {"archive_below": limit, "archive_in_days": days}


def _pinned_by(row: dict[str, Any], policy: Policy) -> str | None:
    if row["action"] == "pin":
        return f"rule {row['rule']!r}"
    if form := next((form for form in FORMS if form.SPARED and form.topic_kind() == row["topic_kind"]), None):
        return f"being a {form.NOUN}"
    if row["topic_kind"] in policy.pinned_kinds:
        return "policy.pinned_kinds"
    return "a recorded decision" if row.get("pinned") else None


def _pressure(row: dict[str, Any], policy: Policy) -> dict[str, Any]:
    pinned = row.get("pinned_topics") or 0
    return {
        "active": row["active"],
        "soft_limit": policy.topic_count_soft_limit,
        "bound": policy.max_active_topics,
        "under": bool(row["pressure"]),
        "pinned": pinned,
        "surplus": max(0, row["active"] - max(pinned, policy.max_active_topics)),
    }
