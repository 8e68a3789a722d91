"""Splits text into terms, for the index and for questions alike, independent of language and model.

A term is a word (NFKC, lower case, letters, digits and underscore; a character on its own in scripts that
are written without spaces) or, for a word of letters only and longer than four, its first four letters
marked by `*`, so that `paint` finds `painting`. Truncation at four is about as good as a stemmer over
European languages and needs none (McNamee and Mayfield 2004, "Character N-Gram Tokenization for European
Language Text Retrieval"). Numbers and codes are never cut.
"""

from __future__ import annotations

import re

import polars as pl

STEM_LETTERS = 4
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[{UNSPACED}]|[\w--[{UNSPACED}]]+"
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_STEMMED = rf"^\p{{L}}{{{STEM_LETTERS + 1},}}$"


def words(text: pl.Expr) -> pl.Expr:
    """The words of a text column, in order, as a column of lists (null becomes an empty list)."""
    return text.fill_null("").str.normalize("NFKC").str.to_lowercase().str.extract_all(_WORD)


def terms(texts: pl.DataFrame) -> pl.DataFrame:
    """Every term of every text, repeated as often as it occurs.

    Args:
        texts: the column `text` and any number of columns that identify it.

    Returns:
        The identifying columns and `term`, one row an occurrence, in no particular order.
    """
    found = texts.select(pl.exclude("text"), term=words(pl.col("text"))).explode("term").drop_nulls("term")
    stems = found.with_columns(term=_stem(pl.col("term"))).drop_nulls("term")
    return pl.concat([found, stems])


def question_terms(text: str) -> list[str]:
    """The distinct terms of a question, sorted."""
    if text.isascii():
        return _ascii_terms(text.lower())
    found = pl.select(term=words(pl.lit(text)).explode(empty_as_null=False))
    stems = found.select(_stem(pl.col("term")))
    return sorted({*found.to_series(), *stems.to_series().drop_nulls()})


def _ascii_terms(text: str) -> list[str]:
    """The same for a text in which each letter is its own normal form, without a frame."""
    found = set(_ASCII_WORD.findall(text))
    return sorted(found | {f"{word[:STEM_LETTERS]}*" for word in found if len(word) > STEM_LETTERS and word.isalpha()})


def _stem(term: pl.Expr) -> pl.Expr:
    """The marked first letters of a word that is long enough; null for others."""
    return pl.when(term.str.contains(_STEMMED)).then(term.str.slice(0, STEM_LETTERS) + "*")
