"""Condition C6: what was used since the last snapshot is more salient than it would be had nobody used it.

Compared is the salience before it is cut to its maximum, as a logarithm, so that it is told apart however far
it has faded. A use after the topic's last event must show; one before it may be too faint to. Left out is what
changed for other reasons too: topics that failed somebody, that lost evidence to another topic or were merged
with one, whose kind is another now, or whose last event lies ahead of the run, and all of a run whose policy is
not that of its base.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.run.run import Run
from memstate_core.state.decisions import MERGED, MOVED
from memstate_core.state.graph import TOPIC, Graph

_DAY = 86_400_000_000
_ROUNDING = 1e-9
_COLUMNS = ["id", "topic_kind", "strength", "reinforced_at", "half_life_days"]
_OTHERS = pl.Struct({"was": pl.String, "survivor": pl.String})


def not_raised(graph: Graph, base: Graph, run: Run, accesses: pl.DataFrame) -> pl.DataFrame:
    """Topics that were used and are not more salient for it (column topic_id).

    Args:
        graph: the working graph.
        base: that of the snapshot that the run started from, under the same policy.
        run: gives the logical time and this run's decisions.
        accesses: what is new since then (columns ACCESSES, by the topics that answer now).
    """
    excused = pl.concat([accesses.filter("failed")["topic_id"], _changed_otherwise(run)]).implode()
    used = accesses.filter(~pl.col("topic_id").is_in(excused)).group_by(id="topic_id").agg(_used=pl.col("at").max())
    now, before = (source.read(TOPIC, _COLUMNS).join(used, on="id") for source in (graph, base))
    levels = now.with_columns(_now=_level(run.facts.now)).join(
        before.select("id", "topic_kind", _last="reinforced_at", _before=_level(run.facts.now)), on="id"
    )
    same = pl.col("topic_kind").eq_missing(pl.col("topic_kind_right")) & (pl.col("reinforced_at") <= run.facts.now)
    late = pl.col("_used") > pl.col("_last")
    raised = (
        pl.when(late).then(pl.col("_now") > pl.col("_before")).otherwise(pl.col("_now") > pl.col("_before") - _ROUNDING)
    )
    return levels.filter(same & ~raised).select(topic_id="id")


def _level(now: datetime) -> pl.Expr:
    """The logarithm to base 2 of what is left of the strength."""
    elapsed = (pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAY
    return pl.col("strength").log(2) - elapsed / pl.col("half_life_days")


def _changed_otherwise(run: Run) -> pl.Series:
    """Topics that gave evidence away, or were merged with another, in this run."""
    rows = run.decisions("topics", "merges").filter(pl.col("kind").is_in([MOVED, MERGED]))
    told = rows["payload_json"].str.json_decode(_OTHERS).struct
    return pl.concat([told.field("was"), told.field("survivor")]).drop_nulls()
