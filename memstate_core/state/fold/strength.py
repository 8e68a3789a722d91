"""Salience in closed form: it rises with recent, frequent and spaced events, and decays.

Events are times at which evidence mentioned a topic or field (weight `field_salience_initial`), at which it was
accessed (weight `query_salience_bump`), or at which feedback marked it as useless (`failed`, weight 0). Between
event i and the next, the strength halves every h m_i days, where h is the half-life of the policy and

    m_i = bounded(x_i) / bounded(f_i),      bounded(y) = 1 + (g - 1) y / (y + g - 1)
    x_i = sum of d / (d + h) over the gaps d (in days) that ended with an access, up to event i
    f_i = how many of the events up to i failed

so accesses spread over time lengthen the half-life, at most g = `half_life_growth_max` times, while the same
accesses at once hardly do (the spacing effect; Cepeda et al., Psychological Bulletin 132(3), 2006), and failures
shorten it, at most g times. In the time u(t) = integral of dt / m(t) everything halves each h, so the
strength at the last event T is S = sum_i w_i 2^(-(u(T) - u(t_i)) / h), and at a time t the salience is
min(max, S) 2^(-(t - T) / (h m_T)), at most max. A record may be dated a little ahead, so t may lie before T.

With g = 1 this is the combined recency and frequency of LRFU (Lee et al., IEEE ToC 50(12), 2001, with
F(x) = 2^(-x/h)). It depends on elapsed time only, so a run every night and a run once a month give the
same value; one more access raises S and, unless it coincides with another event, lengthens the
half-life, so it strictly lowers the chance of being attenuated (condition C6).
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.policy.settings import Policy

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

DECAY = ("strength", "reinforced_at", "half_life_days")
"""The columns that salience is computed from; topics have `failed_strength` too."""

_DAY = 86_400_000_000
_LN2 = 0.6931471805599453
_LARGEST_EXPONENT = 700.0
"""Beyond 709 the exponential is infinite, and a strength of 0 long before its last event would have no number."""


def strength(events: pl.DataFrame, by: list[str], policy: Policy) -> pl.DataFrame:
    """Strength and half-life at the last event.

    Args:
        events: one row an event; columns `by`, `at` (UTC moments), `weight`, `failed` (whether it was a
            failure, whose own weight counts towards `failed_strength` alone) and `half_life` (h, in days).
        by: what is salient; its rows share one half-life.
        policy: bounds the change of the half-life.

    Returns:
        Columns `by`, `strength`, `failed_strength` (floats), `reinforced_at` (T) and `half_life_days`
        (h m_T), sorted by `by`.
    """
    ordered = events.sort(*by, "at", "failed", "weight")
    starts = _starts(ordered, by)
    lengths = np.diff(starts, append=len(ordered))
    last, place = starts + lengths - 1, np.arange(len(ordered)) - np.repeat(starts, lengths)
    weight, half_life, failed = (ordered[name].to_numpy() for name in ("weight", "half_life", "failed"))
    gap = np.where(place > 0, np.diff(ordered["at"].dt.timestamp("us").to_numpy(), prepend=0) / _DAY, 0.0)
    spaced = _running_sums(np.where(failed, 0.0, gap / (gap + half_life)), place)
    factor = _bounded(spaced, policy) / _bounded(_running_sums(failed.astype(float), place), policy)
    before = np.where(place > 0, np.roll(factor, 1), 1.0)
    felt = _running_sums(gap / before / half_life, place)
    left = weight * np.exp2(felt - np.repeat(felt[last], lengths))
    return ordered[last].select(
        *by,
        pl.Series("strength", _sums(np.where(failed, 0.0, left), starts)),
        pl.Series("failed_strength", _sums(np.where(failed, left, 0.0), starts)),
        reinforced_at="at",
        half_life_days=pl.Series(half_life[last] * factor[last]),
    )


def _starts(ordered: pl.DataFrame, by: list[str]) -> Places:
    """The first row of each slot."""
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in by)
    return np.flatnonzero(ordered.select(is_new | (pl.int_range(pl.len()) == 0)).to_series().to_numpy())


def _running_sums(values: Floats, place: Places) -> Floats:
    """Sums within each slot up to each row (Hillis and Steele, CACM 29(12), 1986).

    They depend on the slot's own values alone, whatever else is in the frame.
    """
    total, step = values.copy(), 1
    rows = np.flatnonzero(place >= step)
    while len(rows):
        total[rows] = total[rows] + total[rows - step]
        step *= 2
        rows = rows[place[rows] >= step]
    return total


def _sums(values: Floats, starts: Places) -> Floats:
    return np.add.reduceat(values, starts) if len(starts) else np.empty(0)


def salience(now: datetime, policy: Policy, strength: str = "strength") -> pl.Expr:
    """Salience at a time, in [0, field_salience_max].

    Args:
        now: the time.
        policy: gives the maximum.
        strength: the column of the strength; `reinforced_at` and `half_life_days` are columns beside it.
    """
    most = policy.field_salience_max
    elapsed = (pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAY
    exponent = (-_LN2 * elapsed / pl.col("half_life_days")).clip(upper_bound=_LARGEST_EXPONENT)
    faded = pl.col(strength).clip(0, most) * exponent.exp()
    return faded.clip(0, most).round(9)


def saliences(
    fields: pl.DataFrame, topics: pl.DataFrame, now: datetime, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields and topics with their salience at a time; a topic's is the mean of its fields'.

    A topic without fields has the salience of its evidence as a whole.

    Args:
        fields: columns id, topic_id and DECAY.
        topics: columns id, failed_strength and DECAY.
        now: the time.
        policy: the maximum.

    Returns:
        The fields, sorted by id, with `salience`, and the topics with `salience` and `failed_salience`.
    """
    ranked = fields.sort("id").with_columns(salience=salience(now, policy))
    means = ranked.group_by("topic_id", maintain_order=True).agg(_mean=pl.col("salience").mean())
    failed = salience(now, policy, "failed_strength").fill_null(0.0)
    own = topics.with_columns(_own=salience(now, policy), failed_salience=failed).join(
        means, left_on="id", right_on="topic_id", how="left"
    )
    return ranked, own.with_columns(salience=pl.coalesce("_mean", "_own").fill_null(0.0).round(9)).drop("_mean", "_own")


def _bounded(count: Floats, policy: Policy) -> Floats:
    """1 at a count of 0, strictly increasing with initial slope 1, and bounded by the limit."""
    rest = policy.half_life_growth_max - 1
    return 1 + rest * count / (count + rest) if rest > 0 else np.ones_like(count)
