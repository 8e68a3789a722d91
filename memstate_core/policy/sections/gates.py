"""The section `[gates]` of `memstate.toml`: what a night may change before it needs a person's consent.

Gates decide whether a night is published and nothing about its state, so they are no part of the policy and its hash.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memstate_core.policy.loading import Section

Severity = Literal["error", "warn", "off"]
Percent = Annotated[float, Field(ge=0, le=100)]
Factor = Annotated[float, Field(gt=1, le=1_000_000)]


class GateSettings(Section):
    """What a night may change: of each gate what its failure does, and its limits.

    A gate that fails refuses the night (`error`), or the night is published with a warning (`warn`); `off` skips it.
    """

    expected_false_merges: Severity = "warn"
    """Gate on merges: the share of the night's automatic merges that is wrong by their own probabilities. Where records
    resemble each other closely, these expect more than there are."""
    expected_false_merges_percent: Percent = 10.0
    """Share of expected false merges, in per cent, up to which the gate passes. A `merge_probability` below 0.9 needs
    more."""
    expected_false_merges_min: Annotated[float, Field(ge=0)] = 5.0
    """Expected false merges up to which the gate passes whatever their share."""
    shrinkage: Severity = "error"
    """Gate on loss: fewer active topics, or less evidence served, than in the snapshot before. Topics that an unchanged
    policy archives or merges are no loss. In a night that sets rows aside it warns only, since no input may stop the
    nights."""
    shrinkage_topics_percent: Percent = 25.0
    """Fall of the number of active topics, in per cent, up to which the gate passes."""
    shrinkage_evidence_percent: Percent = 5.0
    """Fall of the number of pieces of evidence served, in per cent, up to which the gate passes."""
    growth: Severity = "warn"
    """Gate on growth: more active topics, or more evidence served, than in the snapshot before."""
    growth_factor: Factor = 5.0
    """Factor by which either may grow in a night."""
    compared_from: Annotated[int, Field(ge=1)] = 100
    """Size of the snapshot before from which shrinkage and growth are judged: active topics for the number of topics,
    pieces of evidence for that of evidence."""
    quarantine_share: Severity = "warn"
    """Gate on refused input: the refused share of the rows that were read since the last report."""
    quarantine_share_percent: Percent = 20.0
    """Share of refused rows, in per cent, up to which the gate passes."""
    quarantine_share_min: Annotated[int, Field(ge=0)] = 10
    """Number of refused rows up to which the gate passes whatever their share."""
    scope_vanished: Severity = "warn"
    """Gate on scopes: one that had active topics in the snapshot before has none. It passes where an unchanged policy
    archived or merged them."""
    duration: Severity = "warn"
    """Gate on time: the seconds of the night's steps against the median of past nights of the shard."""
    duration_factor: Factor = 3.0
    """Factor of the median up to which the gate passes."""
    duration_min_seconds: Annotated[float, Field(ge=0)] = 60.0
    """Seconds up to which the gate passes whatever the median."""
    duration_min_nights: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of past nights with a report from which the gate is judged. The median is of the last 30."""
    recall: Severity = "error"
    """Gate on answers: the questions of `[recall]` find less of what they should find than in what is served. Each
    scope counts the same. In a night that sets rows aside it warns only."""
    max_recall_loss: Percent = 5.0
    """Loss of recall, in percentage points, up to which the gate passes."""
