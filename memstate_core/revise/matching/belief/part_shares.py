"""How often topics agree in their parts, and in all of some."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.revise.matching.comparison.parts import Reals

CERTAIN = 1 - 1e-9
"""The highest share, so that odds are finite."""


def part_shares(parts: pl.DataFrame) -> pl.DataFrame:
    """The logarithm of the share of pairs that agree in a part which both have; one is added.

    Returns:
        Columns name, log, compared (how often the part is compared over two sources, to how often within one), and
        across (the logarithm of the share of pairs that agree or are not compared).
    """
    number = pl.col("len").cast(pl.Float64)
    agree, every = (number * (number - 1)).sum(), number.sum() * (number.sum() - 1)
    shares = parts.group_by("name", "key").len().group_by("name").agg(log=((agree + 1) / (every + 2)).log())
    return shares.with_columns(compared=pl.lit(1.0), across=pl.col("log"))


def joint(logs: pl.DataFrame, dependence: float, count: int, column: str = "log") -> Reals:
    """The logarithm of the share of pairs that agree in all of some parts: no more than in any one of them (pairs,).

    Args:
        logs: columns pair, and the logarithm of the share of each part.
        dependence: of the parts on each other.
        count: pairs.
        column: the name of the latter.
    """
    independent = np.bincount(logs["pair"].to_numpy(), logs[column].to_numpy(), minlength=count)
    return np.asarray(np.minimum(independent + dependence, least(logs, count, column)))


def least(logs: pl.DataFrame, count: int, column: str) -> Reals:
    """The least logarithm of a share among the parts of each pair, 0 without any (pairs,)."""
    lowest = np.zeros(count)
    np.minimum.at(lowest, logs["pair"].to_numpy(), logs[column].to_numpy())
    return lowest


def stands_for(own: Reals, across: Reals) -> Reals:
    """How many equal pairs each pair of different things stands for, given the logarithms of two shares.

    Where the two are the same, these are the odds of the share.

    Args:
        own: of pairs within a source that agree in all parts, as those of different things that are seen do not.
        across: of pairs over two sources that do, or are not compared.
    """
    return np.asarray(np.exp(across) / (1 - np.minimum(np.exp(own), CERTAIN)))


def share_across(share: pl.Expr) -> pl.Expr:
    """The share of pairs over two sources that agree in a part or are not compared in it."""
    return 1 - pl.col("compared") * (1 - share)


def uncompared(against: pl.DataFrame, compared: pl.DataFrame, count: int) -> Reals:
    """The probability that none of some parts of each pair is compared over two sources; 1 without any (pairs,).

    Args:
        against: the parts (columns pair, name).
        compared: how often each part is compared there (columns name, compared); never, where it is missing.
        count: pairs.
    """
    rows = against.select("pair", "name").join(compared.select("name", "compared"), on="name", how="left")
    logs = rows.select("pair", log=(-pl.col("compared").fill_null(0.0)).log1p())
    return np.asarray(np.exp(np.bincount(logs["pair"].to_numpy(), logs["log"].to_numpy(), minlength=count)))
