"""Salience recomputed from what the ledger records, in closed form.

For events i of one topic or field at times t_i with weights w_i (statements, accesses, failures) and half-life h:
gaps d_i = t_i - t_(i-1) in days; x_i = sum of d / (d + h) over gaps that ended with a statement or access; f_i the
failures so far; m_i = b(x_i) / b(f_i) with b(y) = 1 + (g - 1) y / (y + g - 1); u_i = sum of d_(j) / m_(j-1). The
strength at the last event is the sum of w_i 2^((u_i - u_n) / h), failures apart, and the salience at a time t is
min(max, strength) 2^(-(t - t_n) / (h m_n)), at most max.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.model.frames import MOMENT, Schema
from memstate_core.night.checks.derived import Derived
from memstate_core.policy.overrides import value_for
from memstate_core.policy.settings import Policy

_EVENT: Schema = {"topic_id": pl.String, "name": pl.String, "at": MOMENT, "weight": pl.Float64, "failed": pl.Boolean}
_SLOT = ["topic_id", "name"]
_DAYS = 86_400_000_000
_MOST_DOUBLINGS = 1000.0
"""Before the last event, salience is larger; beyond this it would be infinite, and without a number where it is 0."""


def recorded_salience(
    stated: pl.DataFrame,
    accesses: pl.DataFrame,
    derived: Derived,
    topics: pl.DataFrame,
    now: datetime,
    policy: Policy,
    doubt: pl.Series | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Salience of topics and fields at a time.

    Args:
        stated: columns STATEMENTS.
        accesses: columns ACCESSES, each access once.
        derived: the state that the ledger implies.
        topics: columns id, scope, topic_kind, on which half-lives depend.
        now: the time.
        policy: weights, half-lives and limits.
        doubt: ids of the topics whose salience is wanted; None for all.

    Returns:
        Topics (columns topic_id, salience, failed_salience, strength, failed_strength, reinforced_at,
        half_life_days, evidence, created_at) and fields (columns topic_id, name, salience, strength, reinforced_at,
        half_life_days).
    """
    half_lives = topics.select(topic_id="id", _half_life=value_for("salience_half_life_days", policy))
    used = _accessed(accesses, derived, topics, policy)
    homes = derived.homes
    if doubt is not None:
        homes, used = (rows.filter(pl.col("topic_id").is_in(doubt.implode())) for rows in (homes, used))
    fields = stated.filter(pl.col("part") == "field").select("topic_id", "name", at="observed_at")
    by_field = _levels(_field_events(_weighted(fields, policy), used), half_lives, now, policy)
    held = homes.select("topic_id", "at", name=pl.lit(None, pl.String))
    whole = used.unique("access_id").select(_EVENT.keys()).with_columns(name=pl.lit(None, pl.String))
    by_topic = _levels(pl.concat([_weighted(held, policy), whole]), half_lives, now, policy)
    return _of_topics(by_topic.drop("name"), by_field, homes), by_field


def aged_salience(
    topics: pl.DataFrame, fields: pl.DataFrame, derived: Derived, now: datetime, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Salience of topics and fields at a time, from strengths that were checked (result as of `recorded_salience`).

    Args:
        topics: columns topic_id, strength, failed_strength, reinforced_at, half_life_days.
        fields: columns topic_id, name, strength, reinforced_at, half_life_days.
        derived: the state that the ledger implies.
        now: the time.
        policy: limits.
    """
    faded = {"salience": _faded("strength", now, policy)}
    by_field = fields.with_columns(**faded, failed_strength=pl.lit(0.0), failed_salience=pl.lit(0.0))
    columns = ["strength", "failed_strength", "reinforced_at", "half_life_days", "salience", "failed_salience"]
    by_topic = topics.with_columns(**faded, failed_salience=_faded("failed_strength", now, policy).fill_null(0.0))
    known = _of_topics(by_topic.select("topic_id", *columns), by_field, derived.homes)
    return known, by_field.select("topic_id", "name", *columns)


def _of_topics(by_topic: pl.DataFrame, by_field: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """Topics with the mean salience of their fields, the number of their evidence, and the time of the first."""
    means = by_field.group_by("topic_id").agg(_mean=pl.col("salience").mean())
    counts = homes.group_by("topic_id").agg(evidence=pl.len().cast(pl.Int64), created_at=pl.col("at").min())
    rows = counts.join(by_topic, on="topic_id").join(means, on="topic_id", how="left")
    return rows.with_columns(salience=pl.coalesce("_mean", "salience").round(9)).drop("_mean")


def _weighted(rows: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    weighed = rows.with_columns(weight=pl.lit(policy.field_salience_initial), failed=pl.lit(False))
    return weighed.select(_EVENT.keys())


def _accessed(accesses: pl.DataFrame, derived: Derived, topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Accesses of current topics by their own scope, a row for each named field (columns access_id and _EVENT)."""
    rows = accesses.with_columns(derived.answering(pl.col("topic_id")), weight=pl.lit(policy.query_salience_bump))
    foreign = rows.filter(pl.col("scope").is_not_null()).join(
        topics.select("scope", topic_id="id"), on=["topic_id", "scope"], how="anti"
    )
    own = rows.filter(~pl.col("access_id").is_in(foreign["access_id"].implode()))
    named = own.explode("fields", empty_as_null=True).rename({"fields": "name"})
    return named.unique(["access_id", "name"]).select("access_id", *_EVENT.keys())


def _field_events(statements: pl.DataFrame, used: pl.DataFrame) -> pl.DataFrame:
    slots = statements.select(_SLOT).unique()
    named = used.join(slots, on=_SLOT, how="semi")
    whole = used.filter(pl.col("name").is_null()).drop("name").join(slots, on="topic_id")
    return pl.concat([statements, named.select(_EVENT.keys()), whole.select(_EVENT.keys())])


def _levels(events: pl.DataFrame, half_lives: pl.DataFrame, now: datetime, policy: Policy) -> pl.DataFrame:
    rows = events.join(half_lives, on="topic_id").sort(*_SLOT, "at", "failed")
    rows = _timed(rows.with_columns(_place=pl.struct(_SLOT).rle_id()), policy)
    age = pl.col("_time") - pl.col("_time").last().over("_place")
    rows = rows.with_columns(_left=pl.col("weight") * (2.0 ** (age / pl.col("_half_life"))))
    last = rows.group_by("_place", maintain_order=True).agg(
        pl.col(*_SLOT, "_half_life", "_factor").last(),
        strength=pl.col("_left").filter(~pl.col("failed")).sum(),
        failed_strength=pl.col("_left").filter("failed").sum(),
        reinforced_at=pl.col("at").last(),
    )
    found = last.with_columns(half_life_days=pl.col("_half_life") * pl.col("_factor"))
    return found.drop("_place", "_half_life", "_factor").with_columns(
        salience=_faded("strength", now, policy), failed_salience=_faded("failed_strength", now, policy)
    )


def _timed(rows: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Events with m_i (_factor) and u_i (_time), in the order of their slots (_place).

    Each expression over slots is one column: Polars evaluates arithmetic in them slot by slot, which is slow.
    """
    gap = (pl.col("at") - pl.col("at").shift().over("_place")).dt.total_microseconds().fill_null(0) / _DAYS
    spaced = pl.when("failed").then(0.0).otherwise(pl.col("_gap") / (pl.col("_gap") + pl.col("_half_life")))
    rows = rows.with_columns(_gap=gap).with_columns(_spaced=spaced, _failures=pl.col("failed").cast(pl.Float64))
    longer, shorter = (pl.col(name).cum_sum().over("_place") for name in ("_spaced", "_failures"))
    rows = rows.with_columns(_spaced=longer, _failures=shorter)
    rows = rows.with_columns(_factor=_bounded(pl.col("_spaced"), policy) / _bounded(pl.col("_failures"), policy))
    rows = rows.with_columns(_time=pl.col("_gap") / pl.col("_factor").shift().over("_place").fill_null(1.0))
    return rows.with_columns(pl.col("_time").cum_sum().over("_place"))


def _bounded(count: pl.Expr, policy: Policy) -> pl.Expr:
    rest = policy.half_life_growth_max - 1
    return 1 + rest * count / (count + rest) if rest > 0 else pl.lit(1.0)


def _faded(strength: str, now: datetime, policy: Policy) -> pl.Expr:
    most = policy.field_salience_max
    since = (pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAYS
    halvings = (since / pl.col("half_life_days")).clip(lower_bound=-_MOST_DOUBLINGS)
    left = pl.min_horizontal(strength, pl.lit(most)) * 2.0**-halvings
    return left.clip(0, most).round(9)
