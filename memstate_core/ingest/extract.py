"""Titles and summaries taken from the text itself, without a language model.

A title is made of the phrases that set a stretch of turns apart from the others (TF-IDF over words and
word pairs); a summary is the turns closest to the middle of the stretch, in their order. Nothing is
written that nobody said.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema

PHRASES = 3
SUMMARY_TURNS = 2
_TITLE_CHARACTERS = 80
_QUOTE_CHARACTERS = 280


def titles(turns: pl.DataFrame) -> pl.DataFrame:
    """A title for each segment.

    Args:
        turns: columns segment, actor, text.

    Returns:
        Columns segment, title; the first sentence where a segment is a single turn or has no phrases.
    """
    documents = turns.group_by("segment", maintain_order=True).agg(
        pl.col("text").str.join("\n"),
        first=pl.col("text").first().str.extract(r"^\s*([^\n]+?(?:[.!?](?:\s|$)|$|\n))"),
        turns=pl.len(),
    )
    names = turns["actor"].drop_nulls().str.to_lowercase().str.split(" ").explode().unique()
    phrased = _phrases(documents.filter(pl.col("turns") > 1), set(names))
    return documents.join(phrased, on="segment", how="left").select(
        "segment",
        title=pl.coalesce("phrases", _shortened(pl.col("first"), _TITLE_CHARACTERS), pl.lit("untitled")),
    )


def summaries(turns: pl.DataFrame) -> pl.DataFrame:
    """A summary for each segment: its most central turns, with who said them.

    Args:
        turns: columns segment, actor, text, centrality (cosine to the segment's mean vector), in order.

    Returns:
        Columns segment, summary.
    """
    said = pl.concat_str([pl.col("actor") + ": ", pl.col("text")], ignore_nulls=True)
    long_enough = pl.col("text").str.count_matches(r"\w+") >= 4
    ranked = turns.with_row_index("order").sort("segment", ~long_enough, -pl.col("centrality"), maintain_order=True)
    central = ranked.group_by("segment", maintain_order=True).head(SUMMARY_TURNS).sort("order")
    quoted = central.select("segment", _shortened(said, _QUOTE_CHARACTERS).alias("said"))
    return quoted.group_by("segment", maintain_order=True).agg(summary=pl.col("said").str.join("\n"))


def _phrases(documents: pl.DataFrame, names: set[str]) -> pl.DataFrame:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

    schema: Schema = {"segment": documents.schema["segment"], "phrases": pl.String()}
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2),
        stop_words=sorted(ENGLISH_STOP_WORDS | names),
        token_pattern=r"(?u)\b[^\W\d_]\w\w+\b",
    )
    try:
        weights = vectorizer.fit_transform(documents["text"].to_list()).tocoo()
    except ValueError:  # no document has a word that is not a stop word
        return pl.DataFrame(schema=schema)
    terms = pl.Series(vectorizer.get_feature_names_out(), dtype=pl.String)
    scored = pl.DataFrame({"row": weights.row, "phrase": terms[weights.col], "weight": weights.data})
    top = (
        scored.sort("row", "weight", "phrase", descending=[False, True, False])
        .group_by("row", maintain_order=True)
        .head(12)
    )
    chosen = _without_contained(top.with_columns(rank=pl.int_range(pl.len()).over("row")))
    joined = chosen.group_by("row", maintain_order=True).agg(phrases=pl.col("phrase").head(PHRASES).str.join(", "))
    capital = pl.col("phrases").str.slice(0, 1).str.to_uppercase() + pl.col("phrases").str.slice(1)
    numbered = documents.select("segment").with_row_index("row").with_columns(pl.col("row").cast(pl.Int32))
    return numbered.join(joined.with_columns(pl.col("row").cast(pl.Int32)), on="row").select("segment", phrases=capital)


def _without_contained(top: pl.DataFrame) -> pl.DataFrame:
    """Drops a phrase that shares a word with a better one of the same row."""
    words = top.with_columns(word=pl.col("phrase").str.split(" ")).explode("word")
    clashes = words.join(words, on=["row", "word"], suffix="_better").filter(pl.col("rank_better") < pl.col("rank"))
    return top.join(clashes.select("row", "rank").unique(), on=["row", "rank"], how="anti").sort("row", "rank")


def _shortened(text: pl.Expr, limit: int) -> pl.Expr:
    folded = text.str.replace_all(r"\s+", " ").str.strip_chars()
    cut = folded.str.head(limit).str.replace(r"\s+\S*$", "") + "…"
    return pl.when(folded.str.len_chars() > limit).then(cut).otherwise(folded)
