"""Cutting text to a length, at the end of a word."""

from __future__ import annotations

import polars as pl


def shortened(text: pl.Expr, limit: int) -> pl.Expr:
    """A text of at most `limit` characters and a mark that it was cut, white space folded."""
    folded = text.str.replace_all(r"\s+", " ").str.strip_chars()
    cut = folded.str.head(limit).str.replace(r"\s+\S*$", "") + "…"
    return pl.when(folded.str.len_chars() > limit).then(cut).otherwise(folded)
