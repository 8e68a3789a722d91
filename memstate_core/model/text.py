"""Normalisation, JSON quoting and timestamps of text columns."""

from __future__ import annotations

import polars as pl

from memstate_core.model.moments import iso as iso
from memstate_core.model.moments import parse_moment as parse_moment


def normalised(text: pl.Expr) -> pl.Expr:
    """The form in which titles and keys are compared: NFKC, lower case, white space collapsed."""
    return text.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def embedding_text(title: pl.Expr, summary: pl.Expr) -> pl.Expr:
    """The text of a topic that is embedded: its title and, on a new line, its summary."""
    return pl.concat_str([title.fill_null(""), summary.fill_null("")], separator="\n")


def quoted(text: pl.Expr) -> pl.Expr:
    """A string column as JSON strings (null becomes `null`)."""
    return pl.struct(x=text).struct.json_encode().str.slice(5).str.strip_suffix("}")


def iso_expr(moment: pl.Expr) -> pl.Expr:
    """UTC moments as ISO 8601 with a Z; fractional seconds only if they are not zero."""
    return moment.dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ").str.replace(r"\.0{6}Z$", "Z")
