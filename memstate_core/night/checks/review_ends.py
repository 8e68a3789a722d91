"""C3 for the ends of reviews: each that the last run recorded has a ground of its own.

A review ends if a person confirms the topic, if the topic itself changes, or if it is gone. Ends of earlier runs were
checked in those runs.
"""

from __future__ import annotations

import polars as pl

from memstate_core import __version__
from memstate_core.model.frames import symmetric_difference
from memstate_core.night.checks.checked_state import CheckedState, Tables
from memstate_core.night.checks.recorded import Recorded
from memstate_core.state.fold.decisions import PERSON, READMITTED, REVIEW_ENDED, SET_ASIDE

_TOPIC, _FIELD = ("title", "topic_kind"), ("name", "ref_topic_id")
_REVISION = ("part", "name", "rank", "value_json", "valid_from")
"""Columns that say what a topic is; steps of the ladder end no review."""


def groundless_ends(checked: CheckedState, base: Tables | None, changed: pl.Series) -> pl.DataFrame:
    """Topics whose reviews the last run ended, though nobody confirmed them and they are there as before (topic_id).

    Args:
        checked: the state.
        base: the tables of the snapshot that the run started from.
        changed: topics that changed by the last run's decisions.
    """
    own = checked.recorded.last.filter(pl.col("kind") == REVIEW_ENDED)
    by_run = own.filter(pl.col("payload_json").str.json_path_match("$.actor").ne_missing(pl.lit(PERSON)))
    living = by_run.select("topic_id").join(checked.graph.living, left_on="topic_id", right_on="id", how="semi")
    if living.is_empty():
        return living
    others = [] if base is None else _with_other_rows(checked.graph, base)
    grounds = pl.concat([changed, _with_other_evidence(checked), *others])
    return living.filter(~pl.col("topic_id").is_in(grounds.implode()))


def unsure(recorded: Recorded, missing: str | None) -> str | None:
    """Why the base does not show whether a topic changed, or None where it does.

    Args:
        recorded: the ledger's record.
        missing: why there is no base to compare with, if the ledger records one.
    """
    base = recorded.base
    if base is None or base.made_by == __version__:
        return missing
    return missing or f"{base.made_by or 'an earlier version'} made it and this is {__version__}"


def _with_other_evidence(checked: CheckedState) -> pl.Series:
    """Topics of evidence that the last run set aside or readmitted."""
    rows = checked.recorded.last.filter(pl.col("kind").is_in([SET_ASIDE, READMITTED]))
    moved = rows.select(evidence_id=pl.col("evidence_ids").explode()).drop_nulls()
    return checked.derived.homes.join(moved, on="evidence_id", how="semi")["topic_id"]


def _with_other_rows(now: Tables, base: Tables) -> list[pl.Series]:
    """Topics that differ from the base themselves or in a field or revision, whatever was decided."""
    tables = (
        (now.topics, base.topics, "id", _TOPIC),
        (now.fields, base.fields, "topic_id", _FIELD),
        (now.revisions, base.revisions, "topic_id", _REVISION),
    )
    found = []
    for one, other, owner, names in tables:
        rows = [frame.select(pl.col(owner).alias("topic_id"), *names) for frame in (one, other)]
        found.append(symmetric_difference(*rows)["topic_id"])
    return found
