"""C2 for merges that rest on people's answers: so many were given before, and they can suffice."""

from __future__ import annotations

import math

import polars as pl

from memstate_core.night.checks.check import violating
from memstate_core.state.fold.decisions import JUDGED, PERSON, UNMERGED

LEAST = math.ceil(math.log(0.05) / math.log(0.95))
"""Answers, all `same`, that are given in less than one of twenty cases if one pair in twenty is different."""


def unconfirmed(merged: pl.DataFrame, transitions: pl.DataFrame) -> list[pl.DataFrame]:
    """Merges that answers are said to confirm, of which the scope has fewer, or which are too few for any.

    Which of the answers are about such pairs follows from the model's estimates, which are not computed again.

    Args:
        merged: merges of a run (columns seq, scope, topic_id, confirmed_by; 0 or null where they rest on no answers).
        transitions: columns TRANSITIONS.
    """
    resting = merged.filter(pl.col("confirmed_by") > 0)
    if resting.is_empty():
        return []
    before = transitions.filter(pl.col("seq") < resting["seq"].min())
    counted = resting.join(_answers(before), on="scope", how="left").with_columns(pl.col("answers").fill_null(0))
    few, absent = pl.col("confirmed_by") < LEAST, pl.col("confirmed_by") > pl.col("answers")
    return [
        violating(
            counted.filter(few), "topic_id", f"merged since fewer answers confirm it than {LEAST}, which it takes"
        ),
        violating(counted.filter(absent), "topic_id", "merged since more answers confirm it than are recorded"),
    ]


def _answers(before: pl.DataFrame) -> pl.DataFrame:
    """How many verdicts people gave on pairs of each scope, undone merges among them (columns scope, answers)."""
    undone = (pl.col("kind") == UNMERGED) & (pl.col("payload_json").str.json_path_match("$.actor") == PERSON)
    return before.filter((pl.col("kind") == JUDGED) | undone).group_by("scope").agg(answers=pl.len())
