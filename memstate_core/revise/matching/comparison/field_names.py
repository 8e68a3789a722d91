"""Fields that sources call by names of their own: `Screen Size` and `screen_size`, `year` and `release_year`.

Names of the same letters and digits are those of one field, unless a topic has both. Others are found by their values.
Two names are those of one field if no source has both, and if topics of two sources with the same words in their titles
agree under them far more often than topics that are paired at random: they have the same value, or one has all words
of the other's. Topics that were merged from two sources show it, too. There are namesakes among the topics with one
title, so an agreement of much less than one is enough (Cohen's kappa).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from memstate_core.revise.matching.arrays import pair_products
from memstate_core.revise.matching.comparison.differing_values import differing_fields
from memstate_core.revise.matching.comparison.parts import sampled
from memstate_core.revise.matching.corpus import Corpus

MIN_PAIRS, AGREEING = 30, 0.2
"""Values under two names that show whether they are those of one field, and the agreement beyond chance that does."""
PART = 0.25
"""The share of the words of a value that the other has at least, if it has no others; a city of an address is less."""
MOST_VALUES = 200_000
"""Pairs of values that are compared; of more, those of evenly spaced pairs of topics."""
_OTHER = ("value_b", "text_b", "number_b", "day_b")


def with_common_names(corpus: Corpus, names: Mapping[str, str]) -> Corpus:
    """A corpus of which some fields have other names.

    Of two fields of one topic that get one name, as in one that was merged from two sources, the first stays.

    Args:
        corpus: the topics.
        names: new names by the present ones, as of `common_names`.
    """
    if not names:
        return corpus
    renamed = corpus.fields.with_columns(pl.col("name").replace(dict(names)))
    first = renamed.unique(["row", "name"], keep="first", maintain_order=True)
    return replace(corpus, fields=first.sort("row", "name"))


def common_names(corpus: Corpus) -> dict[str, str]:
    """Names of fields that are called otherwise elsewhere, with one name for each field: the first of the alphabet."""
    spelt = _of_same_letters(corpus)
    found = _by_values(with_common_names(corpus, spelt))
    return found | {name: found.get(first, first) for name, first in spelt.items()}


def _of_same_letters(corpus: Corpus) -> dict[str, str]:
    """Names that differ by case, spaces and signs alone, with the first of them; not those of which a topic has two."""
    letters = pl.col("name").str.to_lowercase().str.replace_all(r"[^\pL\pN]", "").alias("letters")
    held = corpus.fields.select("row", "name", letters).filter(pl.col("letters") != "").unique()
    several = held.filter(pl.len().over("row", "letters") > 1)
    names = held.join(several, on="letters", how="anti").select("name", first=pl.col("name").min().over("letters"))
    return dict(names.unique().filter(pl.col("name") != pl.col("first")).sort("name").iter_rows())


def _by_values(corpus: Corpus) -> dict[str, str]:
    """The same for names of other letters."""
    used = _names_by_source(corpus)
    possible = _possible(used)
    if possible.is_empty():
        return {}
    values = _paired_values(corpus, possible)
    random = values.with_columns(pl.col(_OTHER).reverse().over("name"))
    shares = _agreement(corpus, values).join(_agreement(corpus, random), on="name", suffix="_random")
    beyond, room = pl.col("share") - pl.col("share_random"), 1 - pl.col("share_random")
    enough = (pl.col("len") >= MIN_PAIRS) & (beyond > AGREEING * room)
    found = shares.filter(enough).with_columns(kappa=beyond / room).join(possible, on="name")
    return _grouped(found.sort(pl.col("kappa"), "name", descending=[True, False]), used)


def _names_by_source(corpus: Corpus) -> pl.DataFrame:
    """Which source uses which names, by topics of one source (columns name, source), without names of few values."""
    single = corpus.sources.filter(pl.len().over("row") == 1).with_columns(pl.col("row").cast(pl.Int64))
    fields = corpus.fields.select("name", pl.col("row").cast(pl.Int64)).filter(pl.len().over("name") >= MIN_PAIRS)
    return fields.join(single, on="row").select("name", "source").unique().sort("name", "source")


def _possible(used: pl.DataFrame) -> pl.DataFrame:
    """Pairs of names of which no source uses both (columns one, other, name: both together)."""
    both = used.join(used, on="source", suffix="_b").select(one="name", other="name_b").unique()
    names = used.select("name").unique().sort("name")
    every = names.select(one="name").join(names.select(other="name"), how="cross")
    apart = every.filter(pl.col("one") < pl.col("other")).join(both, on=["one", "other"], how="anti")
    return apart.with_columns(name=pl.format("{}\0{}", "one", "other"))


def _paired_values(corpus: Corpus, possible: pl.DataFrame) -> pl.DataFrame:
    """Values under two names, of topics with the words of one title without a common source, and of merged topics.

    Returns:
        Columns name (of both), value (its row in `fields`), text, number, day, and these again with `_b`; sorted.
    """
    sample = sampled(corpus.title_units.codes)
    pairs = pl.DataFrame({"a": sample.a, "b": sample.b}, schema={"a": pl.Int64, "b": pl.Int64})
    sources = corpus.sources.with_columns(pl.col("row").cast(pl.Int64))
    shared = pairs.join(sources.rename({"row": "a"}), on="a").join(sources.rename({"row": "b"}), on=["b", "source"])
    merged = sources.filter(pl.len().over("row") > 1).select(a="row", b="row").unique().sort("a")
    every = pl.concat([pairs.join(shared, on=["a", "b"], how="anti", maintain_order="left"), merged])
    fields_each = corpus.fields.height / len(corpus)
    ends = every.gather_every(1 + int(every.height * fields_each**2 / MOST_VALUES))
    values = corpus.fields.with_row_index("value").with_columns(pl.col("value", "row").cast(pl.Int64))
    one, other = (values.rename({"row": end, "name": name}) for end, name in (("a", "one"), ("b", "other")))
    ordered = pl.concat([ends, ends.select(a="b", b="a")]).unique()
    met = ordered.join(one, on="a").join(other, on="b", suffix="_b").join(possible, on=["one", "other"])
    return met.drop("one", "other").sort("name", "a", "b")


def _agreement(corpus: Corpus, values: pl.DataFrame) -> pl.DataFrame:
    """How often values agree (columns name, len, share): they are the same, or one has all words of the other."""
    rows = [values[side].to_numpy() for side in ("value", "value_b")]
    cut = pl.Series([sorted(set(row)) for row in corpus.units_of_values], dtype=pl.List(pl.String))
    one, other = (cut.gather(row) for row in rows)
    both = one.list.set_intersection(other).list.len().to_numpy()
    sizes = np.stack([cut.list.len().to_numpy() for cut in (one, other)]).astype(np.int64)
    letters = pair_products(corpus.values, corpus.values, *rows)
    each = values.with_columns(
        pair=pl.int_range(pl.len()),
        letters=pl.Series(letters, dtype=pl.Float64),
        within=pl.Series((both >= sizes.min(axis=0)) & (both >= PART * sizes.max(axis=0)) & (both > 0)),
    )
    seen = differing_fields(corpus, each).join(each.select("pair", "within"), on="pair")
    agree = pl.col("same") | (pl.col("within") & ~pl.col("contradicts"))
    return seen.group_by("name").agg(pl.len(), share=agree.mean())


def _grouped(found: pl.DataFrame, used: pl.DataFrame) -> dict[str, str]:
    """One name for each group of names, which grow by descending agreement as long as no source uses two of a group."""
    sources = dict(used.group_by("name").agg("source").iter_rows())
    groups = {name: {name} for name in sources}
    held = {name: set(of) for name, of in sources.items()}
    for one, other in found.select("one", "other").iter_rows():
        group, more = groups[one], groups[other]
        if group is not more and not held[min(group)] & held[min(more)]:
            together, by = group | more, held[min(group)] | held[min(more)]
            held[min(together)] = by
            groups.update(dict.fromkeys(together, together))
    return {name: min(group) for name, group in sorted(groups.items()) if name != min(group)}
