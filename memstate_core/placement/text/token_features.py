"""Tokens of sentences, one row each, with the features that key phrases need.

Independent of the language: the features follow from the position, frequency and spelling of a word.
"""

from __future__ import annotations

import polars as pl

from memstate_core.placement.text.stop_words import stop_words

_TOKEN = r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}_]*(?:['\u{2019}.\-&][\p{L}\p{M}\p{N}_]+)*[+#]*|[^\s\p{L}\p{M}\p{N}]"
_POSSESSIVE = r"['\u{2019}]s$"
_ASIDE = 0.4
"""A word is an interjection if it makes up the start of a sentence alone in at least this share of its occurrences."""
_ENOUGH = 3
_SHORTEST, _LONGEST, _CAPITAL = 3, 40, 0.8
"""Fewest and most letters of a short form of a name, and the share of its occurrences that are capitalised."""


def tokens(sentences: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Tokens in order.

    Args:
        sentences: columns number, segment, scope, turn_row, sentence.
        names: parts of the speakers' names (columns scope, name), from `speakers`.

    Returns:
        Columns number, segment, scope, turn_row, at (place in the sentence), surface, word (lower case), empty
        (stop words, interjections, speakers' names), named (capitalised inside sentences), vague (of little
        information), run (words of one run follow each other without an empty word or punctuation between them).
    """
    cut = sentences.select("number", "segment", "scope", "turn_row", surface=pl.col("sentence").str.extract_all(_TOKEN))
    long = cut.explode("surface").drop_nulls("surface").with_columns(at=pl.int_range(pl.len()).over("number"))
    plain = pl.col("surface").str.normalize("NFKC").str.to_lowercase().str.replace_all(r"\u{2019}", "'")
    long = long.with_columns(word=plain.str.replace(_POSSESSIVE, ""), _mark=~plain.str.contains(r"[\p{L}\p{N}]"))
    capital = pl.col("surface").str.contains(r"^\p{Lu}")
    next_mark = pl.col("_mark").shift(-1).over("number").fill_null(True)
    long = long.with_columns(_capital=capital, _alone=(pl.col("at") == 0) & next_mark)
    counted = _counts(long, names)
    judged = long.join(counted, on=["scope", "word"], how="left").with_columns(
        pl.col("named", "vague").fill_null(False), empty=pl.col("empty").fill_null(True) | pl.col("_mark")
    )
    starts = pl.col("empty") | pl.col("empty").shift(1).fill_null(True) | (pl.col("at") == 0)
    return judged.with_columns(run=starts.cum_sum()).drop("_capital", "_alone")


def _counts(long: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Words by scope (columns scope, word, empty, named, vague)."""
    inside = pl.col("at") > 0
    found = long.filter(~pl.col("_mark")).group_by("scope", "word").agg(
        count=pl.len(),
        alone=pl.col("_alone").mean(),
        capital=pl.col("_capital").mean(),
        named=(pl.col("_capital") & inside).sum() > 0.5 * inside.sum(),
    )  # fmt: skip
    interjection = (pl.col("alone") >= _ASIDE) & (pl.col("count") >= _ENOUGH)
    bare = ~pl.col("word").str.contains(r"\p{L}{2}|[\p{L}--\p{Latin}]")
    marked = found.join(stop_words(found), on=["scope", "word"], how="left")
    called = marked.join(_called(names), on=["scope", "word"], how="left")
    vocative = pl.col("whole").fill_null(False) | (pl.col("whole").is_not_null() & (pl.col("capital") >= _CAPITAL))
    empty = (~pl.col("vague")).fill_null(False) | interjection | bare | vocative
    return called.select("scope", "word", "named", pl.col("vague").fill_null(False), empty=empty)


def _called(names: pl.DataFrame) -> pl.DataFrame:
    """Forms of address of the speakers: parts of names and prefixes of these (columns scope, word, whole).

    A part has at most `_LONGEST` prefixes, so that their total size is linear in the size of the names.
    """
    length = pl.col("name").str.len_chars()
    sizes = pl.int_ranges(_SHORTEST, pl.min_horizontal(length, pl.lit(_LONGEST)) + 1)
    cut = names.with_columns(size=sizes).explode("size").drop_nulls("size")
    short = cut.select(
        "scope", word=pl.col("name").str.head("size"), whole=pl.col("name").str.len_chars() == pl.col("size")
    )
    full = names.select("scope", word="name", whole=pl.lit(True))
    return pl.concat([short, full]).group_by("scope", "word").agg(pl.col("whole").any())


def speakers(turns: pl.DataFrame) -> pl.DataFrame:
    """Parts of the names of each scope's speakers (columns scope, name)."""
    actors = turns.select("scope", "actor").unique(maintain_order=True)
    split = actors.select("scope", name=pl.col("actor").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+"))
    return split.explode("name").drop_nulls("name").unique()
