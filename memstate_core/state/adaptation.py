"""Condition C6: what was used since the last snapshot is more salient than it would be had nobody used it.

Compared is the salience before it is cut to its maximum, as a logarithm, so that it is told apart however far
it has faded. Left out are topics that failed somebody, which may fade faster, topics that lost evidence to
another one, and a run whose policy is not that of its base.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.state.decisions import MOVED
from memstate_core.state.graph import TOPIC, Graph
from memstate_core.state.run import Run

_DAY = 86_400_000_000
_ROUNDING = 1e-9
_COLUMNS = ["id", "strength", "reinforced_at", "half_life_days"]


def not_raised(graph: Graph, base: Graph, run: Run, accesses: pl.DataFrame) -> pl.DataFrame:
    """Topics that were used and are not more salient for it (column topic_id).

    Args:
        graph: the working graph.
        base: that of the snapshot that the run started from, under the same policy.
        run: gives the logical time and this run's decisions.
        accesses: what is new since then (columns ACCESSES, by the topics that answer now).
    """
    failed = accesses.filter("failed")["topic_id"]
    lost = _losers(run)
    used = accesses.filter(~pl.col("failed"))["topic_id"].unique()
    asked = used.filter(~used.is_in(pl.concat([failed, lost]).implode()))
    now, before = (source.read(TOPIC, _COLUMNS).filter(pl.col("id").is_in(asked.implode())) for source in (graph, base))
    both = now.with_columns(_now=_level(run.facts.now)).join(
        before.select("id", _before=_level(run.facts.now)), on="id"
    )
    return both.filter(pl.col("_now") < pl.col("_before") - _ROUNDING).select(topic_id="id")


def _level(now: datetime) -> pl.Expr:
    """The logarithm to base 2 of what is left of the strength."""
    elapsed = (pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAY
    return pl.col("strength").log(2) - elapsed / pl.col("half_life_days")


def _losers(run: Run) -> pl.Series:
    moved = run.decisions("topics").filter(pl.col("kind") == MOVED)
    return moved["payload_json"].str.json_decode(pl.Struct({"was": pl.String})).struct.field("was")
