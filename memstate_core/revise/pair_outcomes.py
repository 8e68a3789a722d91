"""What a search for duplicates decided on given pairs: whether both topics are in one group, and why not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memstate_core.model.frames import Schema, empty
from memstate_core.revise.matching.clustering import joined
from memstate_core.revise.scope_matches import ABSTAINED, BY_CHANCE, HELD_BACK, ScopeMatches

OUTCOMES: Schema = {"a": pl.String, "b": pl.String, "together": pl.Boolean, "today": pl.Float64, "why": pl.String}
"""Pairs of topics: whether the search and the verdicts `same` make them one, the probability of a match (null if the
search did not compare them), and the reason if they are not one."""

NOT_COMPARED = "not compared: of two kinds, or too little in common"
KEPT_APART = "kept apart by a verdict, an undone merge, keys, kinds or sources"
UNLIKELY = "its probability is below the threshold"
_COMPARED: Schema = {"a": pl.String, "b": pl.String, "today": pl.Float64, "why": pl.String}


def pair_outcomes(found: Sequence[ScopeMatches], pairs: pl.DataFrame, same: pl.DataFrame) -> pl.DataFrame:
    """What was decided on pairs (columns OUTCOMES).

    Args:
        found: what the search found, by scope.
        pairs: pairs of topics in these scopes (columns a, b with a <= b), each once.
        same: pairs that were judged the same (columns a, b), which join groups.
    """
    groups = joined(pl.concat([same.select("a", "b"), *map(_groups, found)]))
    compared = pl.concat([empty(_COMPARED), *(_compared(each, pairs) for each in found)])
    rows = pairs.select("a", "b").join(compared, on=["a", "b"], how="left", maintain_order="left")
    for end in ("a", "b"):
        rows = rows.join(groups.rename({"id": end, "group": f"_{end}"}), on=end, how="left", maintain_order="left")
    together = (pl.col("a") == pl.col("b")) | (pl.col("_a") == pl.col("_b")).fill_null(False)
    why = pl.when(~together).then(pl.col("why").fill_null(NOT_COMPARED))
    return rows.select("a", "b", "today", together=together, why=why).select(OUTCOMES.keys())


def _groups(matches: ScopeMatches) -> pl.DataFrame:
    """Each topic with the first topic of its group (columns a, b)."""
    topics = pl.DataFrame({"b": matches.corpus.topics["id"], "group": matches.found.groups})
    return topics.select(pl.col("b").first().over("group").alias("a"), "b")


def _compared(matches: ScopeMatches, pairs: pl.DataFrame) -> pl.DataFrame:
    """Those of the pairs that were compared in a scope (columns _COMPARED)."""
    found, place = matches.found, matches.corpus.topics.select("id").with_row_index("place")
    asked = pairs
    for end in ("a", "b"):
        asked = asked.join(place.rename({"id": end, "place": f"_{end}"}), on=end)
    candidates = pl.DataFrame({"_a": found.pairs.a, "_b": found.pairs.b}).with_row_index("row")
    asked = asked.with_columns(pl.col("_a", "_b").cast(pl.Int64)).join(candidates, on=["_a", "_b"])
    row = asked["row"].to_numpy()
    today, contradicts = found.scored.probability[row], found.contradicts[row]
    reasons = (
        (found.apart[row], KEPT_APART),
        *((contradicts == code, HELD_BACK[code]) for code in range(1, len(HELD_BACK))),
        (found.chance.doubtful[row], BY_CHANCE),
        (found.decision.held_back[row], ABSTAINED),
        (today < matches.merge[row], UNLIKELY),
    )
    why = np.select([holds for holds, _ in reasons], [reason for _, reason in reasons], HELD_BACK[0])
    return asked.select("a", "b", today=pl.Series(today), why=pl.Series(why, dtype=pl.String)).select(_COMPARED.keys())
