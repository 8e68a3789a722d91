"""Verdicts on merges that runs made: `same` confirms a merge, `different` undoes it for good, `skip` asks last."""

from __future__ import annotations

import polars as pl

from memstate_core.model.errors import VerdictRefused
from memstate_core.model.verdicts import DIFFERENT, SAME
from memstate_core.revise.merge_history import NIGHTLY, merge_list
from memstate_core.revise.unmerge import unmerge_decisions
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import judgements


def verdicts_on_merges(served: Served, given: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What follows from verdicts on pairs that are one topic.

    Args:
        served: the shard that holds the topics.
        given: columns a, b (a < b), verdict; each pair is one topic today.

    Returns:
        The verdicts to record (rows of `given`, with the scope), and the decisions (columns DECISION) that undo the
        merges judged `different`. A verdict `same` that says nothing new is left out, so that verdicts can be given
        again.

    Raises:
        VerdictRefused: no merge in force that a run made joined the two directly, so that the verdict does not say
            what to undo.
    """
    in_force = merge_list(served).filter(~pl.col("undone") & (pl.col("actor") == NIGHTLY))
    ends = {"a": pl.min_horizontal("dropped", "survivor"), "b": pl.max_horizontal("dropped", "survivor")}
    merged = in_force.with_columns(**ends)
    unclear = given.filter(pl.col("verdict") != SAME).join(merged, on=["a", "b"], how="anti")
    away = set(served.topics.filter(pl.col("merged_into").is_not_null())["id"])
    for a, b in unclear.select("a", "b").iter_rows():
        dropped = [topic for topic in (a, b) if topic in away]
        way_out = f"they are one topic now; `memstate undo {dropped[0]}` undoes the merge" if dropped else ""
        raise VerdictRefused(a, b, way_out or "they are ids of one topic, which no merge made")
    known = judgements(served.transitions).filter(pl.col("verdict") == SAME).with_columns(_known=True)
    named = given.join(merged.select("a", "b", "scope"), on=["a", "b"], maintain_order="left")
    marked = named.join(known, on=["a", "b", "verdict"], how="left", maintain_order="left")
    recorded = marked.filter(pl.col("_known").is_null()).drop("_known")
    wrong = recorded.filter(pl.col("verdict") == DIFFERENT)
    return recorded, unmerge_decisions(served, merged.join(wrong, on=["a", "b"], how="semi"))
