"""Titles of segments from their key phrases: one phrase, or two where the first is short.

A title is shared with another segment or topic only where the phrases leave no choice.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.terms import STEM_LETTERS
from memstate_core.model.text import normalised
from memstate_core.placement.text.shorten import shortened

LONGEST = 80
"""Characters of a title."""

UNTITLED = "untitled"
_PHRASES = 4
_ALONE = 3
"""Fewest words of a phrase that makes a title alone."""
_NEAR = 0.6
"""Least worth of a second phrase, as a share of the first one's."""
_APART, _BASE = 0.7, 0.2
"""The exponent of a phrase's distinctiveness, and the factor of a phrase of no similarity to its segment."""


def titles(
    known: pl.DataFrame, phrases: pl.DataFrame, turns: pl.DataFrame, spoken: pl.DataFrame, taken: pl.DataFrame
) -> pl.DataFrame:
    """A title for each segment.

    Args:
        known: columns segment, scope: every segment.
        phrases: columns segment, phrase, words, score, closeness.
        turns: columns segment, text.
        spoken: columns segment, sentence, number, as `sentences` gives them.
        taken: titles of other topics (columns scope, title).

    Returns:
        Columns segment, title. A single turn is named by its first sentence, as is a segment without a phrase.
    """
    length = turns.group_by("segment", maintain_order=True).agg(
        turns=pl.len(), raw=pl.col("text").filter(pl.col("text").str.contains(r"\S")).first()
    )
    first = spoken.sort("number").group_by("segment", maintain_order=True).agg(pl.col("sentence").first())
    described = known.join(length, on="segment", how="left").join(first, on="segment", how="left")
    phrased = _distinct(known.join(_chosen(phrases), on="segment"), taken)
    joined = described.join(phrased, on="segment", how="left")
    by_phrases = pl.when(pl.col("turns") > 1).then(pl.col("phrased"))
    by_sentence = pl.when(pl.col("phrased").is_not_null()).then("sentence")
    title = pl.coalesce(by_phrases, by_sentence, "raw").str.strip_chars()
    named = pl.when(title.str.len_chars() > 0).then(shortened(title, LONGEST))
    return joined.select("segment", title=pl.coalesce(_capitalised(named), pl.lit(UNTITLED)))


def _chosen(phrases: pl.DataFrame) -> pl.DataFrame:
    """The best phrases that have no word in common, best first (columns segment, phrases: list of struct)."""
    apart = (pl.col("score") / pl.col("score").max().over("segment")).fill_nan(1.0).clip(0.0) ** _APART
    worth = apart * (_BASE + pl.col("closeness").clip(0.0))
    ranked = phrases.with_columns(worth=worth).sort(
        "segment", "worth", "phrase", descending=[False, True, False], maintain_order=True
    )
    ranked = ranked.with_columns(rank=pl.int_range(pl.len()).over("segment"))
    stems = ranked.select("segment", "rank", stem=pl.col("words")).explode("stem")
    stems = stems.with_columns(pl.col("stem").str.head(STEM_LETTERS))
    clash = stems.join(stems, on=["segment", "stem"], suffix="_better").filter(pl.col("rank_better") < pl.col("rank"))
    free = ranked.join(clash.select("segment", "rank").unique(), on=["segment", "rank"], how="anti")
    size = pl.col("words").list.len()
    near = pl.col("worth") >= _NEAR * pl.col("worth").max()
    return free.sort("segment", "rank").group_by("segment", maintain_order=True).agg(
        phrases=pl.col("phrase").head(_PHRASES),
        shown=pl.when(size.first() >= _ALONE).then(1).otherwise(near.cast(pl.Int64).head(2).sum()),
    )  # fmt: skip


def _distinct(chosen: pl.DataFrame, taken: pl.DataFrame) -> pl.DataFrame:
    """Titles (columns segment, phrased), extended by further phrases until they are unique in their scope."""
    in_use = taken.select("scope", _key=normalised(pl.col("title")), _taken=pl.lit(True)).unique()
    shown = chosen
    for _ in range(_PHRASES):
        text = pl.col("phrases").list.head("shown").list.join(", ")
        keyed = shown.with_columns(phrased=text, _key=normalised(text))
        found = keyed.join(in_use, on=["scope", "_key"], how="left", maintain_order="left")
        twin = pl.col("_taken").fill_null(False) | (pl.len().over("scope", "_key") > 1)
        shown = found.with_columns(shown=pl.col("shown") + twin.cast(pl.Int64)).drop("_key", "_taken")
    return shown.select("segment", "phrased")


def _capitalised(text: pl.Expr) -> pl.Expr:
    return text.str.slice(0, 1).str.to_uppercase() + text.str.slice(1)
