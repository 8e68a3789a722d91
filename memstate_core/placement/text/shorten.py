"""Cutting text to a length, at the end of a word."""

from __future__ import annotations

import polars as pl

_READ = 20_000
"""Characters of a text that are looked at, so that a short form of a very long text costs no more than that."""


def shortened(text: pl.Expr, limit: int) -> pl.Expr:
    """A text of at most `limit` characters and a mark that it was cut, white space folded."""
    folded = text.str.head(_READ).str.replace_all(r"\s+", " ").str.strip_chars()
    cut = folded.str.head(limit).str.replace(r"\s+\S*$", "") + "…"
    return pl.when(folded.str.len_chars() > limit).then(cut).otherwise(folded)
