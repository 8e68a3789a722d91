"""Expressions over the evidence table that several packages share."""

from __future__ import annotations

import polars as pl


def names_a_topic() -> pl.Expr:
    """Whether a piece of evidence names its topic; what does not is a turn, to be understood."""
    return pl.any_horizontal(pl.col("topic_id", "topic_key", "title").is_not_null())


def spoken() -> pl.Expr:
    """A turn as it is embedded and shown: who said it, then what."""
    return pl.concat_str([pl.col("actor") + ": ", pl.col("text")], ignore_nulls=True)
