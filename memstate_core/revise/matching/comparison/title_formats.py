"""Fields that a source writes into its titles: `Luce Dufault - Ballade` where others have a field for the artist.

What one title says in place of the other contradicts, unless it is only the format of a source. Two ways of saying the
same are recognised where one source at least is duplicate-free:

* The title repeats the whole value of a field in which both topics agree (`007-Ballade`, number 7).
* The topic lacks the field, and its source has a format: its topics without the field often have in their titles the
  whole value that their best counterparts in other sources state. So siblings whose fields name each other
  (`previous: sprint 3`) stay siblings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from memstate_core.model.text import normalised
from memstate_core.revise.matching.arrays import Ints, pair_products
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.sources import Origins, SourceRelations, mutual_best
from memstate_core.revise.matching.corpus import NONE, Corpus

MIN_PAIRS, OFTEN = 30, 0.3
"""Best pairs of a source that show its format, and the share of them that does."""


@dataclass(frozen=True)
class TitleFormats:
    """Which fields sources write into their titles.

    Attributes:
        source: the first source of each topic, NONE where it has none (topics,).
        written: columns source, name.
    """

    source: Ints
    written: pl.DataFrame

    def stated(self, corpus: Corpus, pairs: Candidates, relations: SourceRelations) -> tuple[Any, Any]:
        """Units of each title that only its source's format puts there, since the other topic has them in a field.

        Args:
            corpus: the topics.
            pairs: the pairs.
            relations: how their sources relate; only pairs of which one source is duplicate-free are considered.

        Returns:
            For a's title and for b's, CSR of ones (pairs, title units).
        """
        chosen = np.flatnonzero(relations.competing)
        if not len(chosen):
            nothing = csr_matrix((len(pairs), corpus.title_units.own.shape[1]), dtype=np.float32)
            return nothing, nothing
        one, other = (self._units(corpus, *ends, chosen) for ends in ((pairs.a, pairs.b), (pairs.b, pairs.a)))
        return one, other

    def _units(self, corpus: Corpus, title: Ints, other: Ints, chosen: Ints) -> Any:
        lacking = _lacking(corpus, title, other, self.source, chosen)
        used = lacking.join(self.written, on=["source", "name"], how="semi").select("pair", "value")
        rows = pl.concat([used, _repeated(corpus, title, other, chosen)]).sort("pair")
        some, row = np.unique(rows["pair"].to_numpy(), return_inverse=True)
        entries = np.ones(len(row), np.float32), (row, rows["value"].to_numpy())
        values = csr_matrix(entries, shape=(len(some), corpus.fields.height))
        units = values @ corpus.title_differences.misspelt(corpus.value_units[0])
        return _expanded(corpus.title_units.own[title[some]].multiply(units.sign()).tocsr(), some, len(title))


def learn_formats(
    corpus: Corpus, pairs: Candidates, ranking: Any, origins: Origins, relations: SourceRelations
) -> TitleFormats:
    """Which fields sources write into their titles, from the pairs of which each topic is the other's best.

    Args:
        corpus: the topics.
        pairs: candidate pairs.
        ranking: their agreement (pairs,).
        origins: the sources of the topics.
        relations: how the sources of the pairs relate.
    """
    source = origins.first
    if not relations.competing.any():
        return TitleFormats(source, pl.DataFrame(schema={"source": pl.Int64, "name": pl.String}))
    best = mutual_best(pairs, np.where(relations.competing, ranking, -np.inf), len(corpus)) & relations.competing
    ends = ((pairs.a, pairs.b), (pairs.b, pairs.a))
    rows = pl.concat([_lacking(corpus, title, other, source, np.flatnonzero(best)) for title, other in ends])
    known = rows.with_columns(whole=_whole(corpus, rows))
    shares = known.group_by("source", "name").agg(pl.len(), share=pl.col("whole").mean())
    often = (pl.col("len") >= MIN_PAIRS) & (pl.col("share") >= OFTEN)
    return TitleFormats(source, shares.filter(often).select("source", "name"))


def _lacking(corpus: Corpus, title: Ints, other: Ints, source: Ints, chosen: Ints) -> pl.DataFrame:
    """Fields that topics lack and their counterparts have (columns pair, topic, source, name, value).

    Args:
        corpus: the topics.
        title: the topics that lack the field (pairs,).
        other: their counterparts (pairs,).
        source: the source of each topic (topics,).
        chosen: the pairs to consider.

    Returns:
        value: the row in the corpus's fields.
    """
    topic = title[chosen]
    ends = pl.DataFrame({"pair": chosen, "topic": topic, "row": other[chosen], "source": source[topic]})
    fields = _numbered(corpus)
    has = fields.select("name", topic="row")
    beside = ends.filter(pl.col("source") != NONE).join(fields, on="row").join(has, on=["topic", "name"], how="anti")
    return beside.select("pair", "topic", "source", "name", "value").sort("pair", "value")


def _repeated(corpus: Corpus, title: Ints, other: Ints, chosen: Ints) -> pl.DataFrame:
    """Fields in which both topics agree and whose whole value the title has (columns pair, value: the topic's own)."""
    ends = pl.DataFrame({"pair": chosen, "topic": title[chosen], "row": other[chosen]})
    fields = _numbered(corpus)
    own = ends.join(fields.rename({"row": "topic"}), on="topic")
    both = own.join(fields.drop("value"), on=["row", "name"], suffix="_b")
    same = (pl.col("number") == pl.col("number_b")) | (normalised(pl.col("text")) == normalised(pl.col("text_b")))
    agreed = both.filter(same)
    return agreed.filter(_whole(corpus, agreed)).select("pair", "value").sort("pair", "value")


def _numbered(corpus: Corpus) -> pl.DataFrame:
    """The fields with their places (columns row, name, text, number, value)."""
    fields = corpus.fields.select(pl.col("row").cast(pl.Int64), "name", "text", "number")
    return fields.with_row_index("value").with_columns(pl.col("value").cast(pl.Int64))


def _whole(corpus: Corpus, rows: pl.DataFrame) -> pl.Series:
    """Whether a title has all units of a value (columns topic, value)."""
    (units, size), value = corpus.value_units, rows["value"].to_numpy()
    shared = pair_products(units, corpus.title_units.own, value, rows["topic"].to_numpy())
    return pl.Series((size[value] > 0) & (shared >= size[value]), dtype=pl.Boolean)


def _expanded(matrix: Any, places: Ints, rows: int) -> Any:
    """A CSR matrix with its rows at some places, in order, and no entries elsewhere."""
    entries = np.zeros(rows + 1, np.int64)
    entries[places + 1] = np.diff(matrix.indptr)
    return csr_matrix((matrix.data, matrix.indices, np.cumsum(entries)), shape=(rows, matrix.shape[1]))
