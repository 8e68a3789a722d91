"""Key phrases of segments of turns: words that stand together in the text, as they were written.

Candidates are what stands between empty words and marks (RAKE, Rose et al. 2010, "Automatic Keyword Extraction from
Individual Documents"). A word weighs what sets its segment apart from the others of its scope: TF-IDF, counting turns
rather than occurrences. A phrase is worth what its words weigh, more when it is repeated; a part of one that is said
as often gives way to the whole (C-value, Frantzi et al. 2000). No vague word begins or ends what is said once.
"""

from __future__ import annotations

import polars as pl

LONGEST = 4
"""Words of a phrase."""

_NAME, _CODE, _VAGUE = 1.3, 0.5, 0.8
"""What a proper name, a word with digits and a vague word weigh beside another word."""

_NEARLY = 0.55
"""A phrase of more words stands for a part of it from such a share of its score."""

_POSSESSIVE = r"['\u{2019}]s$"

_UNSEEN = 0.5
"""A word is known from half a segment more than it was seen in, so that no weight is infinite."""


def word_weights(words: pl.DataFrame) -> pl.DataFrame:
    """What each word says of its segment.

    Args:
        words: columns segment, scope, turn_row, word, empty, named, vague, as `tokens` gives them.

    Returns:
        Columns segment, word, idf, weight; words without empty ones.
    """
    full = words.filter(~pl.col("empty"))
    sizes = words.group_by("scope").agg(segments=pl.col("segment").n_unique())
    used = full.group_by("segment", "scope", "word").agg(
        pl.col("named", "vague").any(), turns=pl.col("turn_row").n_unique()
    )
    spread = used.with_columns(among=pl.len().over("scope", "word")).join(sizes, on="scope")
    idf = ((pl.col("segments") + 1) / (pl.col("among") - _UNSEEN)).log()
    weighed = spread.with_columns(idf=idf)
    told = pl.col("idf") * (1 + pl.col("turns").log())
    for applies, factor in (("named", _NAME), (pl.col("word").str.contains(r"\p{N}"), _CODE), ("vague", _VAGUE)):
        told = told * pl.when(applies).then(factor).otherwise(1.0)
    return weighed.select("segment", "word", "idf", weight=told)


def key_phrases(words: pl.DataFrame, weights: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The best phrases of each segment, best first.

    Args:
        words: columns number, segment, turn_row, at, surface, word, empty, vague, run, as `tokens` gives them.
        weights: columns segment, word, weight.
        limit: how many for each segment.

    Returns:
        Columns segment, phrase (as it was written), words (list, lower case), score, rank (from 0).
    """
    full = words.filter(~pl.col("empty")).join(weights, on=["segment", "word"], maintain_order="left")
    grams = pl.concat([_grams(full, length) for length in range(1, LONGEST + 1)])
    found = grams.group_by("segment", "words", maintain_order=True).agg(
        pl.col("weight", "vague").first(),
        phrase=pl.col("phrase").mode(maintain_order=True).first().str.replace(_POSSESSIVE, ""),
        turns=pl.col("turn_row").n_unique(),
        size=pl.col("words").first().list.len(),
    )
    found = found.filter(~pl.col("vague") | ((pl.col("turns") > 1) & (pl.col("size") > 1)))
    score = pl.col("weight") / pl.col("size").sqrt() * (1 + 0.5 * pl.col("turns").log())
    ranked = found.with_columns(score=score).sort(
        "segment", "score", "size", "phrase", descending=[False, True, True, False]
    )
    best = ranked.group_by("segment", maintain_order=True).head(4 * limit)
    kept = _without_parts(best.with_columns(rank=pl.int_range(pl.len()).over("segment")))
    return (
        kept.group_by("segment", maintain_order=True)
        .head(limit)
        .with_columns(rank=pl.int_range(pl.len()).over("segment"))
        .select("segment", "phrase", "words", "score", "rank")
    )


def _grams(full: pl.DataFrame, length: int) -> pl.DataFrame:
    """Every phrase of so many words."""
    steps = range(length)
    after = [
        pl.col("run").shift(-(length - 1)) == pl.col("run"),
        pl.col("number").shift(-(length - 1)) == pl.col("number"),
    ]
    within = pl.all_horizontal(after).fill_null(False) if length > 1 else pl.lit(True)
    made = full.select(
        "segment", "turn_row",
        phrase=pl.concat_str([pl.col("surface").shift(-step) for step in steps], separator=" "),
        words=pl.concat_list(pl.col("word").shift(-step) for step in steps),
        weight=pl.sum_horizontal(pl.col("weight").shift(-step) for step in steps),
        vague=pl.col("vague") | pl.col("vague").shift(-(length - 1)),
        _within=within,
    )  # fmt: skip
    return made.filter("_within").drop("_within")


def _without_parts(ranked: pl.DataFrame) -> pl.DataFrame:
    """Drops phrases that stand inside a longer one which is worth nearly as much: it says what they mean."""
    words = ranked.select("segment", "rank", "score", "size", "turns", word="words").explode("word")
    both = words.join(words, on=["segment", "word"], suffix="_long").filter(pl.col("size_long") > pl.col("size"))
    inside = both.group_by("segment", "rank", "rank_long").agg(
        pl.col("size", "score", "score_long", "turns", "turns_long").first(), shared=pl.len()
    )
    as_often = 2 * pl.col("turns_long") >= pl.col("turns")
    told = (pl.col("shared") >= pl.col("size")) & as_often & (pl.col("score_long") >= _NEARLY * pl.col("score"))
    parts = inside.filter(told).select("segment", "rank").unique()
    return ranked.join(parts, on=["segment", "rank"], how="anti").sort("segment", "rank")
