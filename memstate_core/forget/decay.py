"""Salience in closed form: what was reinforced lately and often is salient, and it halves with time.

A reinforcement at time t_i adds w, and everything halves each half-life h. At the last reinforcement T
the strength is therefore S(T) = sum_i w 2^(-(T - t_i)/h), and at a time t the salience is
min(max, S(T)) 2^(-(t - T)/h), at most max. A record may be dated a little ahead, so t may lie before T.
This is the combined recency and frequency of LRFU (Lee et al., IEEE ToC 50(12), 2001, with
F(x) = 2^(-x/h)). It depends on elapsed time only, so a run every night and a run once a month give the
same value.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.policy.settings import Policy

_DAY = 86_400_000_000


def strength(events: pl.DataFrame, by: list[str], policy: Policy) -> pl.DataFrame:
    """Strength at the last reinforcement.

    Args:
        events: one row a reinforcement; columns `by` and `at` (UTC moments).
        by: what is reinforced.
        policy: gives the weight of an event and the half-life in days.

    Returns:
        Columns `by`, `strength` (float) and `reinforced_at`, sorted by `by`.
    """
    dated = events.sort(*by, "at").with_columns(_last=pl.col("at").max().over(by))
    weight = policy.field_salience_initial * _halvings(pl.col("_last") - pl.col("at"), policy)
    return (
        dated.with_columns(_weight=weight)
        .group_by(by, maintain_order=True)
        .agg(strength=pl.col("_weight").sum(), reinforced_at=pl.col("_last").first())
    )


def salience(now: datetime, policy: Policy) -> pl.Expr:
    """Salience at a time, in [0, field_salience_max], from the columns `strength` and `reinforced_at`."""
    most = policy.field_salience_max
    faded = pl.col("strength").clip(0, most) * _halvings(pl.lit(now) - pl.col("reinforced_at"), policy)
    return faded.clip(0, most).round(9)


def _halvings(elapsed: pl.Expr, policy: Policy) -> pl.Expr:
    half_lives = elapsed.dt.total_microseconds() / (_DAY * policy.salience_half_life_days)
    return (-half_lives * pl.lit(2.0).log()).exp()
