"""Key phrases of segments: consecutive words of the text, as they were written.

Candidates lie between stop words and punctuation (RAKE, Rose et al. 2010, "Automatic Keyword Extraction from
Individual Documents"). Words are weighted by TF-IDF among the segments of a scope, counting turns rather than
occurrences. A phrase scores by the weights of its words, more if it is repeated; a part of a phrase that is as
frequent gives way to the whole (C-value, Frantzi et al. 2000). No vague word begins or ends a phrase that occurs once.

yake finds the same kind of phrases and covers fewer of the words that a segment is about, at eight times the time
(`tests/benchmarks/chat_text.py`).
"""

from __future__ import annotations

import polars as pl

LONGEST = 4
"""Words of a phrase."""

_NAME, _CODE, _VAGUE = 1.3, 0.5, 0.8
"""Factors of the weights of proper names, of words with digits and of vague words."""

_NEARLY = 0.55
"""Least score of a phrase that replaces a part of itself, as a share of the part's score."""

_POSSESSIVE = r"['\u{2019}]s$"

_UNSEEN = 0.5
"""Half a segment is subtracted from the document frequency, so that words of all segments keep some weight."""


def word_weights(words: pl.DataFrame) -> pl.DataFrame:
    """The weight of each word in its segment.

    Args:
        words: columns segment, scope, turn_row, word, empty, named, vague, as `tokens` gives them.

    Returns:
        Columns segment, word, idf, weight; without empty words.
    """
    full = words.filter(~pl.col("empty"))
    sizes = words.group_by("scope").agg(segments=pl.col("segment").n_unique())
    used = full.group_by("segment", "scope", "word").agg(
        pl.col("named", "vague").any(), turns=pl.col("turn_row").n_unique()
    )
    spread = used.with_columns(among=pl.len().over("scope", "word")).join(sizes, on="scope")
    idf = ((pl.col("segments") + 1) / (pl.col("among") - _UNSEEN)).log()
    weighed = spread.with_columns(idf=idf)
    weight = pl.col("idf") * (1 + pl.col("turns").log())
    for applies, factor in (("named", _NAME), (pl.col("word").str.contains(r"\p{N}"), _CODE), ("vague", _VAGUE)):
        weight = weight * pl.when(applies).then(factor).otherwise(1.0)
    return weighed.select("segment", "word", "idf", weight=weight)


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
    """Every candidate phrase of a given number of words."""
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
    """Drops phrases that are part of a longer one with nearly the same score."""
    words = ranked.select("segment", "rank", "score", "size", "turns", word="words").explode("word")
    both = words.join(words, on=["segment", "word"], suffix="_long").filter(pl.col("size_long") > pl.col("size"))
    inside = both.group_by("segment", "rank", "rank_long").agg(
        pl.col("size", "score", "score_long", "turns", "turns_long").first(), shared=pl.len()
    )
    as_often = 2 * pl.col("turns_long") >= pl.col("turns")
    covered = (pl.col("shared") >= pl.col("size")) & as_often & (pl.col("score_long") >= _NEARLY * pl.col("score"))
    parts = inside.filter(covered).select("segment", "rank").unique()
    return ranked.join(parts, on=["segment", "rank"], how="anti").sort("segment", "rank")
