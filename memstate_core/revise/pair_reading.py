"""Readings of merged pairs: which parts of two topics agree, which differ, and how many other topics share them.

A reading describes the topics as they were when the pair was merged, in terms that a person can check; the comparisons
and weights that led to the merge are in `matching`. The parts of a topic are its title, its summary and its fields,
called `title`, `summary` and `field:<name>`. Two parts agree if they have the same key:

- titles and summaries: the same words in the same order, whatever their case, accents and punctuation;
- fields: the same day, the same number, or the same text but for case and white space.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import PAIRS
from memstate_core.model.text import normalised
from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.corpus import Corpus

MAX_VALUE = 32
"""Characters of a value that a reading keeps."""


def readings(corpus: Corpus, a: Ints, b: Ints, groups: Ints) -> pl.DataFrame:
    """The readings of pairs of one scope.

    Args:
        corpus: the topics of the scope.
        a: positions of topics (pairs,).
        b: positions of the others (pairs,).
        groups: a group's number for each topic; both topics of a pair are in one group (topics,).

    Returns:
        Columns pair (the position), reading; sorted. A pair of topics that have no parts is left out.
    """
    if not len(a):
        return empty({"pair": pl.UInt32, "reading": PAIRS["reading"]})
    parts = _parts(corpus).join(pl.DataFrame({"group": groups}).with_row_index("topic"), on="topic")
    pairs = pl.DataFrame({"a": a, "b": b}).with_row_index("pair").with_columns(pl.col("a", "b").cast(pl.UInt32))
    both = _side_by_side(parts, pairs)
    one, other = pl.col("key"), pl.col("key_b")
    values = pl.struct("name", a="value", b="value_b")
    listed = both.group_by("pair", maintain_order=True).agg(
        agree=pl.col("name").filter(one == other),
        differ=values.filter(one != other),
        only=pl.col("name").filter(one.is_null() | other.is_null()),
    )
    read = listed.join(_rarest(parts, both.filter(one == other)), on="pair", how="left", maintain_order="left")
    return read.select("pair", reading=pl.struct(pl.exclude("pair")))


def _side_by_side(parts: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Parts that a topic of each pair has: pair, name, group, key, value, and those of the other topic with `_b`."""
    one, other = (pairs.select("pair", topic=end).join(parts, on="topic").drop("topic") for end in ("a", "b"))
    both = one.join(other, on=["pair", "name"], how="full", coalesce=True, suffix="_b")
    return both.sort("pair", pl.col("name").replace_strict({"title": 0, "summary": 1}, default=2), "name")


def _rarest(parts: pl.DataFrame, agreeing: pl.DataFrame) -> pl.DataFrame:
    """What the fewest topics outside the pair's group share (columns pair, shared, shared_by, shared_in_group)."""
    same = parts.join(agreeing, on=["name", "key"], how="semi")
    counted = [(["name", "key"], "shared_by"), (["name", "key", "group"], "shared_in_group")]
    for columns, count in counted:
        others = same.group_by(columns).agg((pl.len().cast(pl.Int64) - 2).alias(count))
        agreeing = agreeing.join(others, on=columns, maintain_order="left")
    outside = pl.col("shared_by") - pl.col("shared_in_group")
    first = agreeing.sort("pair", outside, maintain_order=True).unique("pair", keep="first", maintain_order=True)
    return first.rename({"name": "shared"}).select("pair", "shared", "shared_by", "shared_in_group")


def _parts(corpus: Corpus) -> pl.DataFrame:
    """The parts of all topics (columns topic, name, key, value); values are cut, those of summaries left out."""
    topics = corpus.topics.with_row_index("topic")
    texts = [
        topics.select("topic", name=pl.lit(name), key=_words(pl.col(name)), value=_short(shown))
        for name, shown in (("title", pl.col("title")), ("summary", pl.lit(None, pl.String)))
    ]
    day, number = pl.format("day {}", "day"), pl.format("number {}", "number")
    text = normalised(pl.col("text"))
    key = pl.when(text != "").then(pl.coalesce(day, number, pl.format("text {}", text)))
    topic, name = pl.col("row").cast(pl.UInt32), pl.format("field:{}", "name")
    fields = corpus.fields.select(name=name, topic=topic, key=key, value=_short(pl.col("text")))
    return pl.concat([*texts, fields.select(texts[0].columns)]).drop_nulls("key")


def _words(text: pl.Expr) -> pl.Expr:
    """The words of a text, folded; a text without any as it is, null if there is none."""
    folded = text.str.normalize("NFKD").str.to_lowercase().str.replace_all("[\u0300-\u036f]+", "")
    words = folded.str.replace_all(r"[^\p{L}\p{M}\p{N}\p{S}]+", " ").str.strip_chars()
    plain = normalised(text)
    return pl.when(words != "").then(words).when(plain != "").then(plain)


def _short(text: pl.Expr) -> pl.Expr:
    """The text on one line, cut to MAX_VALUE characters."""
    line = text.str.replace_all(r"\s+", " ").str.strip_chars()
    cut = pl.concat_str(line.str.head(MAX_VALUE - 1).str.strip_chars_end(), pl.lit("…"))
    return pl.when(line.str.len_chars() > MAX_VALUE).then(cut).otherwise(line)
