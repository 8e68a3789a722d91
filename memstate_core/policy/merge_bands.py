"""Merge bands of pairs of topics: those of the first merge rule that applies to both, else the policy's."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.policy.rules import Bands, Rule, applicable_merge_rules

_BANDS: Schema = {
    "merge_rule": pl.Int64,
    "rule": pl.String,
    "merge_probability": pl.Float64,
    "review_probability": pl.Float64,
}


def rule_bands(rules: Sequence[Rule], default: Bands) -> pl.DataFrame:
    """The bands of each merge rule.

    Args:
        rules: the rules of a policy.
        default: the policy's own merge_probability and review_probability.

    Returns:
        Columns merge_rule (its position in `rules`), rule (its name), merge_probability, review_probability.
    """
    rows = [(at, rule.name, *rule.bands(default)) for at, rule in enumerate(rules) if rule.do == "merge"]
    return pl.DataFrame(rows, schema=_BANDS, orient="row")


def pair_bands(pairs: pl.DataFrame, topics: pl.DataFrame, rules: Sequence[Rule], default: Bands) -> pl.DataFrame:
    """The bands of each pair.

    Args:
        pairs: columns a and b, ids of topics.
        topics: column id, and those that the merge rules refer to.
        rules: the rules of a policy.
        default: the policy's own bands, for pairs to which no rule applies.

    Returns:
        The columns and rows of pairs, in their order, with rule (a name, or null), merge_probability and
        review_probability. No rule applies to topics that are not among `topics`.
    """
    fitting = applicable_merge_rules(topics, rules).select("id", "merge_rules")
    both = pairs.join(fitting, left_on="a", right_on="id", how="left", maintain_order="left").join(
        fitting, left_on="b", right_on="id", how="left", maintain_order="left", suffix="_b"
    )
    first = pl.col("merge_rules").list.set_intersection("merge_rules_b").list.min()
    ruled = both.select(*pairs.columns, merge_rule=first)
    banded = ruled.join(rule_bands(rules, default), on="merge_rule", how="left", maintain_order="left")
    return banded.drop("merge_rule").with_columns(
        pl.col("merge_probability").fill_null(default[0]), pl.col("review_probability").fill_null(default[1])
    )
