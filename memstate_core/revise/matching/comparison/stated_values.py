"""Values of fields that titles state: `Crib in Navy` is no crib whose field `colors` says purple.

A title states a value of a field that its topic lacks if it has a word that is the whole value of that field elsewhere.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import OFTEN, Corpus
from memstate_core.revise.matching.texts.tokens import is_number

_WORDS = pl.List(pl.String)
_ROW = pl.col("row").cast(pl.Int64)


def stated_otherwise(corpus: Corpus, pairs: Candidates, among: NDArray[np.bool_]) -> pl.DataFrame:
    """Fields of which a title states another value than the other topic has; neither topic states both.

    Args:
        corpus: the topics.
        pairs: the pairs.
        among: those that are looked at (pairs,).

    Returns:
        Columns pair, name; sorted.
    """
    rows = np.flatnonzero(among)
    stated = _stated(corpus, np.union1d(pairs.a[rows], pairs.b[rows]))
    having = np.zeros(len(corpus), bool)
    having[stated["row"].to_numpy()] = True
    found = [pl.DataFrame(schema={"pair": pl.Int64, "name": pl.String})]
    for one, other in ((pairs.a, pairs.b), (pairs.b, pairs.a)):
        some = rows[having[one[rows]]]
        ends = pl.DataFrame({"pair": some, "row": one[some], "other": other[some]})
        found.append(_other_values(corpus, ends.join(stated, on="row")))
    return pl.concat(found).unique().sort("pair", "name")


def _stated(corpus: Corpus, rows: Ints) -> pl.DataFrame:
    """Words of the titles of some topics that are values of fields which these lack (columns row, name, said).

    A word counts if it is the whole value for OFTEN topics or more; numbers do not, since they may count anything.
    """
    units = pl.Series("said", corpus.units_of_values, dtype=_WORDS)
    single = corpus.fields.select(_ROW, "name", units).filter(pl.col("said").list.len() == 1).explode("said")
    often = single.group_by("name", "said").agg(pl.col("row").n_unique()).filter(pl.col("row") >= OFTEN).drop("row")
    words = often.filter(~pl.Series([is_number(word) for word in often["said"]], dtype=pl.Boolean))
    titles = _titles(corpus, rows).rename({"title": "said"}).explode("said").join(words, on="said")
    held = corpus.fields.select(_ROW, "name")
    return titles.join(held, on=["row", "name"], how="anti").group_by("row", "name").agg("said")


def _titles(corpus: Corpus, rows: Ints) -> pl.DataFrame:
    """The units of the titles of some topics (columns row, title)."""
    return pl.DataFrame({"row": rows, "title": pl.Series([corpus.title_units.cut[row] for row in rows], dtype=_WORDS)})


def _other_values(corpus: Corpus, ends: pl.DataFrame) -> pl.DataFrame:
    """Where the other topic has the field, and neither has what the other one says (columns pair, name).

    Args:
        corpus: the topics.
        ends: pairs (columns pair, row, other, name, said: what the title of `row` states of `name`).
    """
    units = pl.Series("units", corpus.units_of_values, dtype=_WORDS)
    named = corpus.fields.select(_ROW.alias("other"), "name", units)
    values = named.join(ends.select("other", "name").unique(), on=["other", "name"], how="semi").group_by(
        "other", "name"
    )
    both = ends.join(values.agg(pl.col("units").list.explode()), on=["other", "name"])
    titles = _titles(corpus, np.unique(both.select(pl.concat_list("row", "other").explode()).to_series().to_numpy()))
    both = both.join(titles, on="row").join(titles.rename({"row": "other"}), on="other", suffix="_b")
    shared = pl.col("units").list.set_intersection("title").list.len()
    known = pl.concat_list("units", "title_b").list.set_intersection("said").list.len()
    return both.filter((shared == 0) & (known == 0)).select("pair", "name")
