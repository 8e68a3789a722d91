"""Parts of topics beside the title, the summary and the fields, and whether both topics of pairs agree in them.

Two parts agree if they have the same key: the same day, the same number, or the same units of text. The last digits
of measured numbers vary (`typed_values.MEASURED`), so they agree if they do not contradict each other; their key is a
range of values, by which chance is estimated. Where many numbers of a field are that close, as coordinates within one
town, or repeats have the very same ones, the number itself is the key. Fields that do not agree contradict each other
if they name different things, summaries if they follow one template (`differing_values`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import compared_summaries, differing_fields
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.texts.typed_values import NEAR_NUMBER

Reals = NDArray[np.float64]

SUMMARY, FIELD = "summary", "field:"
"""The names of parts, as in the readings of merges; the name of a field follows FIELD."""
NEAR = "≈"
"""How keys of measured numbers begin; no unit of a text does."""
RANGE = 2 * NEAR_NUMBER
"""The width of the ranges of measured numbers, in nats: numbers that may be the same are in one or in two beside it."""
SPREAD = 0.1
"""The share of pairs of measured numbers of a field in one range, up to which it says something that they are."""
COPIED = 0.1
"""The share of pairs with one title and numbers in one range that have the same number, beyond which they are copies
rather than measured anew."""
STEPS = 16
"""Topics in each direction with which a topic is paired, of a shuffled ring of those with the same code."""


@dataclass(frozen=True)
class Sample:
    """Pairs of topics with the same code, and how many pairs each stands for: 1 where all were taken.

    Attributes:
        a: positions (pairs,).
        b: positions of the others, each greater than its `a`.
        weight: pairs that each stands for (pairs,).
    """

    a: Ints
    b: Ints
    weight: Reals

    @property
    def candidates(self) -> Candidates:
        """The pairs, proposed by no view."""
        return Candidates(self.a, self.b, np.zeros((len(self.a), 0), bool))

    def where(self, chosen: NDArray[np.bool_]) -> Sample:
        """Some of the pairs (pairs,)."""
        return Sample(self.a[chosen], self.b[chosen], self.weight[chosen])


def parts_of(corpus: Corpus) -> pl.DataFrame:
    """The parts of topics (columns row, name, key); summaries only where they say something besides the title."""
    words = pl.Series("words", [" ".join(row) for row in corpus.units_of_values], dtype=pl.String)
    key = pl.coalesce(pl.format("day {}", "day"), _ranges(corpus), pl.format("number {}", "number"), "words")
    named = pl.format(FIELD + "{}", "name").alias("name")
    fields = corpus.fields.hstack([words]).select(pl.col("row").cast(pl.Int64), named, key=key)
    rows = np.flatnonzero(corpus.summarised)
    said = pl.Series("key", [" ".join(corpus.summary_units[row]) for row in rows], dtype=pl.String)
    summaries = pl.DataFrame({"row": pl.Series(rows, dtype=pl.Int64)}).with_columns(name=pl.lit(SUMMARY))
    return pl.concat([fields, summaries.hstack([said])])


def _ranges(corpus: Corpus) -> pl.Series:
    """The key of each measured number (rows of `fields`): its sign and range; null where the number itself is the key.

    That is so where many numbers of the field are in one range, and where things that are noted again have the same
    number, as copies do. Ranges are as wide in logarithms, and about a field's least size (`typed_values`) in numbers.
    """
    number, least = pl.col("number"), pl.col("least_size")
    signed = least > 0
    nats = pl.when(signed).then((number / least).arcsinh()).otherwise(number.abs().log())
    key = pl.format(NEAR + " {} {}", pl.when(~signed).then(number.sign()).otherwise(0.0), (nats / RANGE).floor())
    ranged = pl.when(pl.Series(corpus.measured) & ((number != 0) | signed)).then(key)
    titles = pl.Series("title", corpus.title_units.codes)
    fields = corpus.fields.with_columns(corpus.least_sizes)
    keyed = fields.select("name", number, key=ranged, title=titles.gather(corpus.fields["row"]))
    count = pl.col("key").count()
    near, alike, copied = (_others(*columns) for columns in (("key",), ("title", "key"), ("title", "key", "number")))
    rare = near.sum().over("name") <= SPREAD * (count * (count - 1)).over("name")
    own = copied.sum().over("name") <= COPIED * alike.sum().over("name")
    return keyed.select(pl.when(rare & own).then("key")).to_series()


def _others(*columns: str) -> pl.Expr:
    """How many other rows of a field have the same key in some columns; 0 without a key."""
    return pl.when(pl.col("key").is_not_null()).then(pl.len().over("name", *columns) - 1).otherwise(0)


def agreements(corpus: Corpus, parts: pl.DataFrame, a: Ints, b: Ints) -> pl.DataFrame:
    """Parts that both topics of pairs have; a part in which they neither agree nor contradict each other varies.

    Args:
        corpus: the topics.
        parts: their parts (columns as of `parts_of`).
        a: positions of topics (pairs,).
        b: positions of the others (pairs,).

    Returns:
        Columns pair, name, agree, contradict; sorted.
    """
    ends = pl.DataFrame({"a": pl.Series(a, dtype=pl.Int64), "b": pl.Series(b, dtype=pl.Int64)})
    one = (
        ends.with_row_index("pair").with_columns(pl.col("pair").cast(pl.Int64)).join(parts, left_on="a", right_on="row")
    )
    both = one.join(parts, left_on=["b", "name"], right_on=["row", "name"], suffix="_b")
    differing = differing_fields(corpus, corpus.value_pairs(a, b)).with_columns(name=pl.format(FIELD + "{}", "name"))
    template = compared_summaries(corpus, Candidates(a, b, np.zeros((len(a), 0), bool))).replaced
    differing_text = pl.Series(template[both["pair"].to_numpy()], dtype=pl.Boolean)
    differ = pl.when(pl.col("name") == SUMMARY).then(differing_text).otherwise(pl.col("contradicts").fill_null(False))
    near = pl.all_horizontal(pl.col("key", "key_b").str.starts_with(NEAR))
    keyed = both.with_columns(agree=(pl.col("key") == pl.col("key_b")) | near)
    seen = keyed.join(differing, on=["pair", "name"], how="left", maintain_order="left")
    return seen.select("pair", "name", agree=pl.col("agree") & ~differ, contradict=differ).sort("pair", "name")


def sampled(code: Ints) -> Sample:
    """Pairs of topics with the same code: all, or of each topic 2 * STEPS at random where more have the code.

    Args:
        code: of each topic (topics,).
    """
    shuffled = np.random.default_rng(0).permutation(len(code))
    order = shuffled[np.argsort(code[shuffled], kind="stable")]
    ranked = code[order]
    start = np.searchsorted(ranked, ranked, "left")
    size = np.searchsorted(ranked, ranked, "right") - start
    place = np.arange(len(code)) - start
    drawn = []
    for step in range(1, STEPS + 1):
        at = np.flatnonzero((size > 2 * step) | ((size == 2 * step) & (place < step)))
        drawn.append((order[at], order[start[at] + (place[at] + step) % size[at]], size[at]))
    one, other, of = (np.concatenate(column) for column in zip(*drawn, strict=True))
    return Sample(np.minimum(one, other), np.maximum(one, other), np.maximum(1.0, (of - 1) / (2 * STEPS)))


def counted(seen: pl.DataFrame, count: int) -> Ints:
    """How often each of so many pairs occurs in a frame with a column pair (count,)."""
    return np.bincount(seen["pair"].to_numpy(), minlength=count).astype(np.int64)
