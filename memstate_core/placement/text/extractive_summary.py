"""Extractive summaries of segments: their most relevant sentences in original order, with the speakers' names."""

from __future__ import annotations

import polars as pl

from memstate_core.placement.text.shorten import shortened

SENTENCES = 3
_DIGITS = 9
"""Decimals of scores: sums of floats differ in the last digits from run to run, and equal sentences must tie."""

_CANDIDATES = 8
"""Sentences of a segment that are compared with each other."""
_WORTH = 0.1
"""Least score of a further sentence, as a share of the best one's."""
_LONGEST, _LONGEST_NAME = 280, 200
"""Characters of one quotation, and of the speaker's name before it."""

_QUESTION = r"[?\u{61F}\u{FF1F}\u{37E}][\"')\p{Pf}\p{Pe}]*$"
_ASKED, _BRIEF, _COUNTED, _BASE = 0.4, 0.3, 1.2, 0.3
"""Factors for questions, for sentences under four words, for those with a number, and for those of no similarity to
the segment's centroid."""


def summaries(spoken: pl.DataFrame, words: pl.DataFrame, weights: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """A summary for each segment.

    Args:
        spoken: columns segment, turn_row, number, actor, sentence, centrality, as `sentences` gives them.
        words: columns number, segment, word, as `tokens` gives them.
        weights: columns segment, word, weight.
        turns: columns segment, actor, text: a segment without a sentence is summarised by its first text.

    Returns:
        Columns segment, summary.
    """
    used = words.join(weights, on=["segment", "word"]).select("segment", "number", "word", "weight").unique()
    scored = _scored(spoken, words, used)
    chosen = _spread(scored, used)
    quoted = spoken.join(chosen, on="number", how="semi").sort("number")
    leaves_out = (pl.col("number") - pl.col("number").shift(1) > 1).over("turn_row").fill_null(False)
    marked = pl.when(leaves_out).then("\u2026 " + pl.col("sentence")).otherwise("sentence")
    lines = quoted.with_columns(sentence=marked).group_by("segment", "turn_row", maintain_order=True).agg(
        pl.col("actor").first(), text=pl.col("sentence").str.join(" ")
    )  # fmt: skip
    quotes = lines.group_by("segment", maintain_order=True).agg(summary=_line().str.join("\n"))
    plain = turns.filter(pl.col("text").str.contains(r"\S")).group_by("segment", maintain_order=True).head(1)
    plain = plain.select("segment", "actor", "text").select("segment", plain=_line())
    every = turns.select("segment").unique(maintain_order=True)
    joined = every.join(quotes, on="segment", how="left").join(plain, on="segment", how="left")
    return joined.select("segment", summary=pl.coalesce("summary", "plain"))


def _line() -> pl.Expr:
    return pl.concat_str(
        [pl.col("actor").str.head(_LONGEST_NAME) + ": ", shortened(pl.col("text"), _LONGEST)], ignore_nulls=True
    )


def _scored(spoken: pl.DataFrame, words: pl.DataFrame, used: pl.DataFrame) -> pl.DataFrame:
    """The candidates (columns segment, number, score), best first."""
    lengths = words.group_by("number").agg(size=pl.len(), digits=pl.col("word").str.contains(r"\p{N}").any())
    mass = used.group_by("number").agg(mass=pl.col("weight").sum())
    joined = spoken.join(lengths, on="number", how="left").join(mass, on="number", how="left")
    size = pl.col("size").fill_null(1)
    score = pl.col("mass").fill_null(0.0) / (size + 2).sqrt() * (_BASE + pl.col("centrality").clip(0.0))
    for applies, factor in (
        (pl.col("sentence").str.contains(_QUESTION), _ASKED),
        (size < 4, _BRIEF),
        (pl.col("digits").fill_null(False), _COUNTED),
    ):
        score = score * pl.when(applies).then(factor).otherwise(1.0)
    ranked = joined.select("segment", "number", score=score.round(_DIGITS)).sort(
        "segment", "score", "number", descending=[False, True, False]
    )
    return ranked.group_by("segment", maintain_order=True).head(_CANDIDATES)


def _spread(scored: pl.DataFrame, used: pl.DataFrame) -> pl.DataFrame:
    """Up to `SENTENCES` numbers per segment, chosen greedily by what each adds to those before (column number)."""
    shared = _shared(used.join(scored, on="number", how="semi"))
    top = scored.group_by("segment").agg(top=pl.col("score").max())
    left, chosen = scored, list[pl.DataFrame]()
    for _ in range(SENTENCES):
        best = (
            left.sort("segment", "score", "number", descending=[False, True, False])
            .group_by("segment", maintain_order=True)
            .first()
        )
        chosen.append(best.select("number"))
        near = shared.join(best.select(other="number"), on="other").group_by("number").agg(pl.col("share").max())
        rest = left.join(best, on="number", how="anti").join(near, on="number", how="left")
        left = rest.select("segment", "number", score=pl.col("score") * (1 - pl.col("share").fill_null(0.0)))
        worth = left.join(top, on="segment").filter(pl.col("score") > _WORTH * pl.col("top"))
        left = worth.select("segment", "number", "score")
    return pl.concat(chosen)


def _shared(used: pl.DataFrame) -> pl.DataFrame:
    """The share of a sentence's weight that another sentence of its segment covers (columns number, other, share)."""
    total = used.group_by("number").agg(total=pl.col("weight").sum())
    both = used.join(used.select("segment", "word", other="number"), on=["segment", "word"])
    common = both.filter(pl.col("number") != pl.col("other")).group_by("number", "other").agg(pl.col("weight").sum())
    return common.join(total, on="number").select(
        "number", "other", share=(pl.col("weight") / pl.col("total")).round(_DIGITS)
    )
