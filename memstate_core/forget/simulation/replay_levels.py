"""Strengths of topics and fields, and lengths of histories, as successive nights would find them under a policy.

Only what had an event since the previous night is computed again, by the functions of the fold.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.forget.simulation.event_history import EventHistory
from memstate_core.policy.overrides import value_for
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.history import SLOT, in_order, repeated
from memstate_core.state.fold.strength import DECAY, strength
from memstate_core.state.fold.usage_events import field_events, topic_events

_STRENGTHS = ["id", *DECAY, "failed_strength"]
_EVENT = ["id", "at", "weight", "failed", "half_life"]
_FIELD = ["topic_id", "name"]


class Levels:
    """Topics, or fields, with their strengths as of the last requested moment."""

    def __init__(self, slots: pl.DataFrame, events: pl.DataFrame, policy: Policy) -> None:
        """Starts before the first moment.

        Args:
            slots: columns id and since (when it begins to exist), and any others, which are kept.
            events: columns id, at, weight, failed, half_life.
            policy: bounds the change of half-lives.
        """
        self._slots, self._policy = slots, policy
        self._events = events.select(_EVENT).sort("id", "at", "failed", "weight")
        self._levels = self._strengths(self._events.clear())
        self._known: datetime | None = None

    def until(self, moment: datetime) -> pl.DataFrame:
        """Those that exist at a moment, by the events up to then; moments must not decrease from call to call.

        Returns:
            The columns of the slots, DECAY and failed_strength, sorted by id.
        """
        happened = pl.col("at") <= moment
        fresh = happened if self._known is None else happened & (pl.col("at") > self._known)
        touched = self._events.filter(fresh)["id"].unique()
        if len(touched):
            newer = self._strengths(self._events.filter(pl.col("id").is_in(touched.implode()) & happened))
            self._levels = pl.concat([self._levels.join(newer, on="id", how="anti"), newer]).sort("id")
        self._known = moment
        there = self._slots.filter(pl.col("since") <= moment).sort("id")
        return there.join(self._levels, on="id", how="left", maintain_order="left")

    def _strengths(self, events: pl.DataFrame) -> pl.DataFrame:
        return strength(events, ["id"], self._policy).select(_STRENGTHS)


class Lengths:
    """Lengths of field histories that may exceed what a summary keeps."""

    def __init__(self, history: EventHistory, policy: Policy) -> None:
        """Sorts the assertions of long histories."""
        long = pl.len().over("field") > policy.summary_keep_revisions + 1
        ordered = in_order(history.assertions.filter(long), policy)
        self._assertions = ordered.select("field", *SLOT, "value_json", "observed_at")

    def until(self, moment: datetime) -> pl.DataFrame:
        """Columns id (of the field) and revisions (how many), by the assertions up to a moment."""
        asserted = self._assertions.filter(pl.col("observed_at") <= moment).filter(~repeated())
        return asserted.group_by(id="field").agg(revisions=pl.len().cast(pl.Int64))


def topic_levels(history: EventHistory, policy: Policy) -> Levels:
    """Levels of topics, as the fold would give them."""
    topics = history.topics.with_columns(since="created_at")
    events = topic_events(history.evidence, _weighted(history, policy), policy).rename({"topic_id": "id"})
    return Levels(topics, events.join(_half_lives(history, policy), on="id"), policy)


def field_levels(history: EventHistory, policy: Policy) -> Levels:
    """Levels of fields, as the fold would give them."""
    known = history.fields.select("topic_id", "name", field="id")
    asserted = history.assertions.select("field", at="observed_at").join(known, on="field").select(*_FIELD, "at")
    events = field_events(asserted, _weighted(history, policy), policy).join(known, on=_FIELD)
    half_lives = _half_lives(history, policy).rename({"id": "topic_id"})
    dated = events.join(half_lives, on="topic_id").drop("topic_id").rename({"field": "id"})
    return Levels(history.fields, dated, policy)


def _weighted(history: EventHistory, policy: Policy) -> pl.DataFrame:
    return history.accesses.with_columns(weight=pl.lit(policy.query_salience_bump))


def _half_lives(history: EventHistory, policy: Policy) -> pl.DataFrame:
    return history.topics.select("id", half_life=value_for("salience_half_life_days", policy))
