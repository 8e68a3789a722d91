"""Fields that identify things over duplicate-free sources, such as a telephone number, an ISBN or an address.

What a field is called says nothing about that, its values do: no source has one twice, and topics of two sources that
have the same one also have titles that do not contradict each other. A price may be rare, but equal prices of two shops
are those of different things.

Two topics that share such a value, which no other topic of their sources has, are one thing, or two that the sources
took in turns and that share title and value. As many of the latter are to be expected over two sources as within one,
by the sizes of the sources (`SourceRelations.across_by_within`).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.differing_values import Flags
from memstate_core.revise.matching.siblings import Signs
from memstate_core.revise.matching.sources import Origins

MIN_SHARED = 30
"""Pairs with the same value from which on they show whether a field identifies things."""
MAX_HOLDERS = 16
"""Topics with one value, each of a source of its own, up to which it may identify a thing."""
DIFFERING, REPEATED = 0.1, 0.05
"""The shares of these pairs up to which their titles may contradict each other, and up to which things are expected to
share title and value."""


def share_identifier(corpus: Corpus, pairs: Candidates, found: Signs, origins: Origins, merged: pl.DataFrame) -> Flags:
    """Pairs over duplicate-free sources with the same value of a field that identifies things there (pairs,).

    Args:
        corpus: the topics.
        pairs: the pairs.
        found: signs of the pairs.
        origins: their sources.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
    """
    shares = np.zeros(len(pairs), bool)
    if not origins.distinct.any():
        return shares
    relations = origins.relations(pairs)
    known = pl.DataFrame({"a": pairs.a, "b": pairs.b, "differs": found.title}).with_row_index("pair")
    shared = _shared(corpus, origins).join(known, on=["a", "b"], how="left", maintain_order="left")
    repeats = found.fields.filter("same", pl.col("pair").is_in(np.flatnonzero(relations.within)))
    names = _identifying(shared, repeats, merged, relations.across_by_within)
    shares[shared.filter(pl.col("name").is_in(names.implode()))["pair"].drop_nulls().to_numpy()] = True
    return shares


def _shared(corpus: Corpus, origins: Origins) -> pl.DataFrame:
    """Pairs over duplicate-free sources that share a value which no source has twice (columns a, b, name)."""
    letters = pl.col("text").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")
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

    The number of repeats within sources is raised by about two standard deviations of a Poisson count.

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
    expected = across_by_within * (pl.col("apart") + 2 + 2 * (pl.col("apart") + 1).sqrt())
    identifies = (pairs >= MIN_SHARED) & (pl.col("differing") <= DIFFERING * pairs) & (expected <= REPEATED * pairs)
    return counts.filter(identifies)["name"].sort()
