"""Values of fields that hold at a moment, where later ones are known already.

As with edges, a value is in force from its `valid_from` on; before that it is part of the history only. The fold and
the files of a snapshot order values by valid time without a clock, so what begins later is left out when they are read.
Invariant: where nothing begins later, the rows are returned as they are, and nothing more is read.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.retrieve.facts.conflicts import open_rivals
from memstate_core.state.graph import REVISION, Graph

_FIELD = ("topic_id", "name")
_SLOT = ("topic_id", "part", "name")


def ahead(newest: pl.DataFrame, moment: datetime) -> pl.DataFrame:
    """The fields whose newest value, or the end of a conflict about it, lies after a moment (columns topic_id, name).

    Args:
        newest: revisions, the newest of each field among them (columns REVISIONS).
        moment: the moment.
    """
    later = (pl.col("valid_from") > moment) | (pl.col("settled_at") > moment)
    return newest.filter((pl.col("part") == "field") & (pl.col("rank") == 0) & later).select(_FIELD)


def in_force(histories: pl.DataFrame, moment: datetime) -> pl.DataFrame:
    """Whole histories (columns REVISIONS) without values of fields that begin after a moment, numbered anew."""
    is_field, later = pl.col("part") == "field", pl.col("valid_from") > moment
    begun = histories.filter(~(is_field & later).fill_null(False)).sort(*_SLOT, "rank")
    settled = pl.when(pl.col("settled_at") <= moment).then("settled_at")
    return begun.with_columns(rank=pl.int_range(pl.len()).over(_SLOT), settled_at=settled)


def in_force_of(graph: Graph, older: pl.LazyFrame, current: pl.DataFrame, moment: datetime) -> pl.DataFrame:
    """Current values, with those in open conflict, as they are at a moment.

    Args:
        graph: the graph that they were read from.
        older: the revisions behind summaries (columns REVISIONS).
        current: the newest values of fields and those in open conflict with them (columns REVISIONS).
        moment: the moment.
    """
    fields = ahead(current, moment)
    if fields.is_empty():
        return current
    held = in_force(field_histories(graph, older, fields), moment)
    newest = held.filter(pl.col("rank") == 0)
    rivals = open_rivals(newest)["rival"]
    shown = held.filter((pl.col("rank") == 0) | pl.col("id").is_in(rivals.implode()))
    return pl.concat([current.join(fields, on=_FIELD, how="anti"), shown.select(current.columns)])


def field_histories(graph: Graph, older: pl.LazyFrame, fields: pl.DataFrame) -> pl.DataFrame:
    """The whole histories of some fields (columns topic_id, name), without summaries (columns REVISIONS)."""
    ids = fields["topic_id"].unique().to_list()
    where = "r.part = 'field' AND r.topic_id IN $ids AND r.summarises IS NULL"
    own = graph.read(REVISION, where=where, ids=ids)
    behind = older.filter((pl.col("part") == "field") & pl.col("topic_id").is_in(ids)).collect()
    return pl.concat([own, behind.select(own.columns)]).join(fields, on=_FIELD, how="semi")
