"""Expressions over the evidence table that several packages share."""

from __future__ import annotations

import polars as pl


def names_a_topic() -> pl.Expr:
    """Whether a piece of evidence names its topic; if not, it is a turn whose topic has to be determined."""
    return pl.any_horizontal(pl.col("topic_id", "topic_key", "title").is_not_null())


def spoken() -> pl.Expr:
    """A turn as it is embedded and shown: actor, then text."""
    return pl.concat_str([pl.col("actor") + ": ", pl.col("text")], ignore_nulls=True)
