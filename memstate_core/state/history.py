"""Revision histories: assertions in the order of valid time, with equal neighbours taken as one.

The order is (valid_from, observed_at, first evidence id, position), so a late observation lands in its
place in the history and never becomes current (law L7), and the result does not depend on the order in
which evidence came (L2).
"""

from __future__ import annotations

import polars as pl

from memstate_core.forget.decay import strength
from memstate_core.model.frames import FIELDS, REVISIONS, conform
from memstate_core.model.ids import uuid_expr
from memstate_core.policy.settings import Policy

SLOT = ["topic_id", "part", "name"]
"""What has a history: a field of a topic, or one of its own parts (title, summary, topic_kind)."""


def in_order(assertions: pl.DataFrame) -> pl.DataFrame:
    """Assertions sorted by slot and, within it, from oldest to newest."""
    return assertions.with_columns(_first=pl.col("evidence_ids").list.first()).sort(
        *SLOT, "valid_from", "observed_at", "_first", "position"
    )


def revisions(ordered: pl.DataFrame) -> pl.DataFrame:
    """Histories (columns REVISIONS) from ordered assertions.

    A run of equal consecutive values is one revision: it began when the first of them became true, its
    evidence is that of all, its confidence the highest of them.
    """
    same_slot = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in SLOT)
    repeated = (same_slot & (pl.col("value_json") == pl.col("value_json").shift())).fill_null(False)
    columns = ("value_json", "field_type", "valid_from", "provenance", "why_changed", "impact_expected")
    runs = (
        ordered.with_columns(_run=(~repeated).cum_sum())
        .group_by("_run", maintain_order=True)
        .agg(
            pl.col(*SLOT, *columns, "_first", "position").first(),
            recorded_at=pl.col("recorded_at").min(),
            confidence=pl.col("confidence").max(),
            evidence_ids=pl.col("evidence_ids").list.explode(keep_nulls=False, empty_as_null=False).unique().sort(),
        )
    )
    newest_first = pl.int_range(pl.len()).reverse().over(SLOT)
    identity = uuid_expr("revision", pl.col("part"), pl.col("name"), pl.col("_first"), pl.col("position"))
    return conform(runs.with_columns(rank=newest_first, id=identity), REVISIONS)


def fields(ordered: pl.DataFrame, histories: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The fields that have histories (columns FIELDS; references as given, salience still null).

    A field's type is that of its current revision. Its reference is the newest one given: an observation
    that says nothing of a reference keeps it, one that says null clears it.
    """
    own = pl.col("part") == "field"
    key = ["topic_id", "name"]
    current = histories.filter(own & (pl.col("rank") == 0)).select(*key, "field_type")
    given = ordered.filter(own & pl.col("ref_given"))
    references = given.group_by(key, maintain_order=True).agg(pl.col("ref_topic_id").last())
    events = ordered.filter(own).select(*key, at="observed_at")
    identity = uuid_expr("field", *(pl.col(name) for name in key))
    joined = current.join(references, on=key, how="left").join(strength(events, key, policy), on=key, how="left")
    return conform(joined.with_columns(id=identity), FIELDS)
