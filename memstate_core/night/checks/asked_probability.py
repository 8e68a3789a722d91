"""The probability from which policy lets a run merge a group of topics, at the least."""

from __future__ import annotations

import polars as pl

from memstate_core.model.text import normalised
from memstate_core.night.checks.merged_topics import MergedTopics
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Policy

_KNOWN = {"scope", "scope_type", "topic_kind"}
"""Columns that say of a topic before its merge what evidence says of it."""


def asked_probability(topics: MergedTopics, scopes: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The lowest probability from which a pair of each group may be merged.

    The first merge rule that applies to both topics of a pair decides, else the policy. Which pair a merge relied on is
    not recorded, so a rule may apply that holds for any two topics of the group. A rule with an event, or with a
    condition on what only the run knew, may always apply.

    Args:
        topics: the topics of the merges.
        scopes: columns id, scope.
        policy: that of the run.

    Returns:
        Columns into, asked.
    """
    known = _known(topics, scopes)
    groups = known.select("into").unique().with_columns(asked=pl.lit(policy.merge_probability, pl.Float64))
    for rule in reversed([rule for rule in policy.rules if rule.do == "merge"]):
        probability = rule.bands((policy.merge_probability, policy.review_probability))[0]
        lower = pl.min_horizontal("asked", pl.lit(probability))
        asked = pl.when("_surely").then(pl.lit(probability)).when("_possibly").then(lower).otherwise("asked")
        groups = groups.join(_applying(rule, known), on="into").select("into", asked=asked)
    return groups


def _known(topics: MergedTopics, scopes: pl.DataFrame) -> pl.DataFrame:
    """The topics as conditions see them, a row for each kind that they may have (columns into, topic_id, _KNOWN)."""
    members = topics.members.select("into", "topic_id").join(scopes, left_on="topic_id", right_on="id")
    kinds = topics.kinds.select("topic_id", topic_kind="value")
    kinds = pl.concat([kinds, kinds.with_columns(normalised(pl.col("topic_kind")))]).unique()
    both = members.join(kinds, on="topic_id", how="left")
    return both.with_columns(scope_type=pl.col("scope").str.split(":").list.first())


def _applying(rule: Rule, known: pl.DataFrame) -> pl.DataFrame:
    """Whether a rule applies to any pair of each group, and to every pair (columns into, _possibly, _surely)."""
    if rule.on != "nightly" or not set(rule.holds().meta.root_names()) <= _KNOWN:
        return known.select("into", _possibly=True, _surely=False).unique()
    each = known.group_by("into", "topic_id").agg(_any=rule.holds().any(), _all=rule.holds().all())
    return each.group_by("into").agg(_possibly=pl.col("_any").sum() > 1, _surely=pl.col("_all").all())
