"""The value of a policy key for a topic: that of the last override that applies, else the policy's."""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy


def value_for(key: str, policy: Policy) -> pl.Expr:
    """The value of a key for each row.

    Args:
        key: a key that overrides may set: `salience_half_life_days` or a threshold of the ladder.
        policy: the policy with its overrides.

    Returns:
        An expression over the columns `scope` and `topic_kind`.
    """
    value: pl.Expr = pl.lit(float(getattr(policy, key)))
    for override in policy.overrides:
        own = getattr(override, key)
        if own is not None:
            fits = [
                pl.col(name) == getattr(override, name) for name in ("scope", "topic_kind") if getattr(override, name)
            ]
            value = pl.when(pl.all_horizontal(fits).fill_null(False)).then(pl.lit(float(own))).otherwise(value)
    return value
