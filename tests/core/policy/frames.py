"""Frames of topics as the conditions of rules see them, without columns that are irrelevant to a test."""

from __future__ import annotations

from typing import Any

import polars as pl

from memstate_core.policy.rules import EVENT_COLUMNS, RULE_COLUMNS

_TOPIC = {
    "scope": "user:aya", "scope_type": "user", "topic_kind": "deal", "title": "Acme renewal", "state": "active",
    "salience": 0.31, "failed_salience": 0.0, "age_days": 40.0, "idle_days": 10.0, "half_life_days": 100.0,
    "evidence": 3, "fields": 2, "active": 600, "depended_on": False, "redundant": False, "held": False,
}  # fmt: skip
_EVENTS = dict.fromkeys(EVENT_COLUMNS.values(), pl.Boolean)


def topics(*said: dict[str, Any]) -> pl.DataFrame:
    """Topics t-0, t-1 and so on: column id, RULE_COLUMNS, and the columns of events, all of them true."""
    rows = [{"id": f"t-{number}"} | _TOPIC | dict.fromkeys(_EVENTS, True) | one for number, one in enumerate(said)]
    return pl.DataFrame(rows, schema={"id": pl.String, **RULE_COLUMNS, **_EVENTS})


def topic(**said: Any) -> pl.DataFrame:
    """One topic, with column id and RULE_COLUMNS only."""
    return topics(said).drop(EVENT_COLUMNS.values())
