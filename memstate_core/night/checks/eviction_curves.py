"""C2 for the order over the bound where accesses may have decided it: one of the curves that are compared gives it.

A curve (h, g) ranks a topic with statements and accesses at times t_0 <= ... <= t_n (days) and gaps d_i by
log2 S - (t - t_n) / (h m_n), with x_i = sum of d / (d + h), m_i = min(1000, (1 + x_i)^g), u_i = sum of
d_j / (h m_(j-1)), and S = sum of 2^(u_i - u_n). Which curve a night chose is not recorded, so an order is refused if no
curve gives it; that the chosen one answers most accesses is not checked.
"""

from __future__ import annotations

from datetime import datetime
from itertools import product

import polars as pl

from memstate_core.night.checks.checked_state import CheckedState

HALF_LIVES = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 90.0, 1000.0)
GROWTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Days and exponents of the curves."""
_MOST_GROWTH = 1000.0
_AGREES = 1e-6
"""How far two ways to sum differ, as a share of the larger rank, from 1 on."""
_DAYS = 86_400_000_000


def unexplained(
    marked: pl.DataFrame, accessed: pl.DataFrame, bound: pl.Expr, stays: pl.Expr, checked: CheckedState
) -> pl.DataFrame:
    """Scopes whose order over the bound no curve gives (column scope).

    Args:
        marked: active topics of the scopes in question (columns topic_id, scope, _tier).
        accessed: accesses that did not fail (columns topic_id, at).
        bound: those that the bound took.
        stays: those that stay and could have left.
        checked: the state.
    """
    events = pl.concat([checked.derived.homes.select("topic_id", "at"), accessed])
    rows = events.join(marked.select("topic_id"), on="topic_id", how="semi").sort("topic_id", "at")
    wrong = marked.select("scope").unique()
    for half_life, growth in product(HALF_LIVES, GROWTHS):
        if wrong.is_empty():
            break
        ranks = retained(rows, half_life, growth, checked.recorded.now)
        own = marked.join(wrong, on="scope", how="semi")
        wrong = _disordered(own.join(ranks, on="topic_id"), bound, stays)
    return wrong


def retained(events: pl.DataFrame, half_life: float, growth: float, now: datetime) -> pl.DataFrame:
    """What a curve ranks topics by (columns topic_id, retained).

    Args:
        events: statements and accesses (columns topic_id, at), sorted.
        half_life: after a first event, in days.
        growth: the exponent of its growth.
        now: the time.
    """
    of = "topic_id"
    gap = (pl.col("at") - pl.col("at").shift().over(of)).dt.total_microseconds().fill_null(0) / _DAYS
    rows = events.with_columns(_gap=gap).with_columns(_spaced=pl.col("_gap") / (pl.col("_gap") + half_life))
    rows = rows.with_columns(pl.col("_spaced").cum_sum().over(of))
    rows = rows.with_columns(_life=half_life * ((1 + pl.col("_spaced")) ** growth).clip(upper_bound=_MOST_GROWTH))
    rows = rows.with_columns(_time=pl.col("_gap") / pl.col("_life").shift().over(of).fill_null(1.0))
    rows = rows.with_columns(pl.col("_time").cum_sum().over(of))
    rows = rows.with_columns(_left=2.0 ** (pl.col("_time") - pl.col("_time").last().over(of)))
    last = rows.group_by(of).agg(pl.col("_left").sum(), pl.col("at", "_life").last())
    idle = (pl.lit(now) - pl.col("at")).dt.total_microseconds() / _DAYS
    return last.select(of, retained=pl.col("_left").log(2) - idle / pl.col("_life"))


def _disordered(ranked: pl.DataFrame, bound: pl.Expr, stays: pl.Expr) -> pl.DataFrame:
    """Scopes in which the bound took a topic and left one of the same tier that ranks lower (column scope)."""
    tiers = ranked.group_by("scope", "_tier").agg(
        _most=pl.col("retained").filter(bound).max(), _least=pl.col("retained").filter(stays).min()
    )
    near = _AGREES * pl.max_horizontal(pl.col("_least").abs(), pl.lit(1.0))
    return tiers.filter(pl.col("_most") > pl.col("_least") + near).select("scope").unique()
