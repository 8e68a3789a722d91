"""Fields that identify things over duplicate-free sources, such as a telephone number, an ISBN or an address.

What a field is called says nothing about that, its values do: no source has one twice, and topics of two sources that
have the same one also have titles that do not contradict each other. A price may be rare, but equal prices of two shops
are those of different things.

Two topics that share such a value, which no other topic of their sources has, are one thing, or two that the sources
took in turns and that share title and value. As many of the latter are to be expected over two sources as within one,
by the sizes of the sources (`SourceRelations.across_by_within`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.siblings import Signs, flagged
from memstate_core.revise.matching.comparison.sources import Origins, SourceRelations, upper_bound
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.texts.field_texts import squeezed

MIN_SHARED = 30
"""Pairs with the same value from which on they show whether a field identifies things."""
MAX_HOLDERS = 16
"""Topics with one value, each of a source of its own, up to which it may identify a thing."""
DIFFERING, REPEATED = 0.1, 0.05
"""The shares of these pairs up to which their titles may contradict each other, and up to which things are expected to
share title and value."""


@dataclass(frozen=True)
class InCommon:
    """Which pairs share a value that no source has twice.

    Attributes:
        value: pairs with such a value of any field (pairs,).
        identifier: pairs with such a value of a field that identifies things (pairs,).
    """

    value: Flags
    identifier: Flags


def in_common(
    shared: pl.DataFrame, pairs: Candidates, found: Signs, relations: SourceRelations, merged: pl.DataFrame
) -> InCommon:
    """Which pairs over duplicate-free sources share a value that no source has twice.

    Args:
        shared: topics that share such a value (columns as of `shared_values`).
        pairs: the pairs.
        found: signs of the pairs.
        relations: how their sources relate.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
    """
    if shared.is_empty():
        nothing = np.zeros(len(pairs), bool)
        return InCommon(nothing, nothing)
    every = pl.DataFrame({"a": pairs.a, "b": pairs.b, "differs": found.title}).with_row_index("pair")
    known = every.join(shared, on=["a", "b"], how="semi")
    seen = shared.join(known, on=["a", "b"], how="left", maintain_order="left")
    repeats = found.fields.filter("same", pl.col("pair").is_in(np.flatnonzero(relations.within)))
    names = _identifying(seen, repeats, merged, relations.across_by_within)
    identified = seen.filter(pl.col("name").is_in(names.implode()))
    return InCommon(*(flagged(rows.drop_nulls("pair"), len(pairs)) for rows in (seen, identified)))


def shared_values(corpus: Corpus, origins: Origins) -> pl.DataFrame:
    """Topics of two sources, of which one is duplicate-free, that share a value which no source has twice.

    Returns:
        Columns a, b, name; sorted.
    """
    if not origins.distinct.any():
        return pl.DataFrame(schema={"name": pl.String, "a": pl.Int64, "b": pl.Int64})
    letters = squeezed(pl.col("text"))
    value = pl.coalesce(pl.format("d{}", pl.col("day").floor()), pl.format("n{}", "number"), pl.format("t{}", letters))
    rows = corpus.fields.select("name", pl.col("row").cast(pl.Int64), value=value).filter(pl.col("value") != "t")
    held = rows.join(corpus.sources.with_columns(pl.col("row").cast(pl.Int64)), on="row", how="left")
    sole = pl.col("source").is_not_null() & (pl.len().over("name", "value", "source") == 1)
    kept = held.filter(sole.all().over("name", "value")).select("name", "value", "row").unique()
    kept = kept.filter(pl.len().over("name", "value") <= MAX_HOLDERS)
    both = kept.join(kept, on=["name", "value"], suffix="_b").filter(pl.col("row") < pl.col("row_b"))
    made = both.select("name", a="row", b="row_b").sort("a", "b", "name")
    ends = Candidates(made["a"].to_numpy(), made["b"].to_numpy(), np.zeros((made.height, 0), bool))
    return made.filter(pl.Series(origins.relations(ends).competing))


def _identifying(
    shared: pl.DataFrame, repeats: pl.DataFrame, merged: pl.DataFrame, across_by_within: float
) -> pl.Series:
    """The fields of which a shared value is that of one thing.

    The number of repeats within sources counts with an upper bound.

    Args:
        shared: pairs over sources with the same value (columns name, differs; null where titles are too unlike to be
            compared).
        repeats: pairs within sources with the same value, of those whose titles are alike (column name).
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
        across_by_within: pairs over sources for each pair within one.
    """
    shown = shared.group_by("name").agg(pairs=pl.len(), differing=pl.col("differs").fill_null(True).sum())
    before = merged.filter(pl.col("across") & ~pl.col("differs")).group_by("name").agg(before=pl.len())
    apart = repeats.group_by("name").agg(apart=pl.len().cast(pl.Float64))
    counts = shown.join(before, on="name", how="left").join(apart, on="name", how="left").fill_null(0)
    pairs = pl.col("pairs") + pl.col("before")
    expected = across_by_within * upper_bound(pl.col("apart"))
    identifies = (pairs >= MIN_SHARED) & (pl.col("differing") <= DIFFERING * pairs) & (expected <= REPEATED * pairs)
    return counts.filter(identifies)["name"].sort()
