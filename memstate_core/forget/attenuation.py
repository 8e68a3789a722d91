"""The lower steps of the ladder: summarising field histories, detaching fields and edges.

A field below `summarise_salience_threshold` is summarised if it has more revisions than are kept. Fields, and
association edges, below `detach_salience_threshold` are detached in scopes under pressure. The salience of an edge is
that of the less salient of its topics; extension edges are never detached, since topics depend on them. Each step is
reversed once the salience is above its threshold again.
"""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.fold.edges import EXTENSION_KINDS
from memstate_core.state.fold.ladder_state import LadderState

_FIELD = ["topic_id", "name"]
_EDGE = ["from_id", "to_id", "kind"]
_FEATURES = ["topic_id", "scope", "action", "rule", "pinned", "held", "pressure", "theta_summarise", "theta_detach"]


def summaries(
    fields: pl.DataFrame, topics: pl.DataFrame, ladder: LadderState, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields to summarise, and fields to expand again.

    Args:
        fields: columns topic_id, name, salience, revisions (how many the full history has).
        topics: the columns of `topic_features.governed`.
        ladder: the ladder state by earlier decisions.
        policy: how many revisions a summary keeps.

    Returns:
        Two frames: columns topic_id, scope, name, salience, reason.
    """
    known = fields.join(topics.select(_FEATURES), on="topic_id").join(
        ladder.summaries.with_columns(_is=True), on=_FIELD, how="left"
    )
    ruled = (pl.col("action") == "summarise").fill_null(False)
    low = pl.col("action").is_null() & (pl.col("salience") < pl.col("theta_summarise"))
    long = pl.col("revisions") > policy.summary_keep_revisions + 1
    due = (ruled | low) & long & ~pl.col("pinned") & ~pl.col("held")
    return _changed(known, due, long & ~ruled & (pl.col("salience") < pl.col("theta_summarise")), "theta_summarise")


def detached_fields(
    fields: pl.DataFrame, topics: pl.DataFrame, ladder: LadderState
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields to detach, and fields to attach again; arguments and result as in `summaries`."""
    known = fields.join(topics.select(_FEATURES), on="topic_id").join(
        ladder.fields.with_columns(_is=True), on=_FIELD, how="left"
    )
    low = pl.col("salience") < pl.col("theta_detach")
    due = _may_detach(low)
    return _changed(known, due, low & ~pl.col("pinned"), "theta_detach")


def detached_edges(edges: pl.DataFrame, topics: pl.DataFrame, ladder: LadderState) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Association edges to detach, and edges to attach again.

    Args:
        edges: columns from_id, to_id, kind.
        topics: the columns of `topic_features.governed`.
        ladder: the ladder state by earlier decisions.

    Returns:
        Two frames: columns topic_id (where the edge starts), scope, to_id, kind, salience, reason.
    """
    ends = topics.select(*_FEATURES, "salience")
    associations = edges.filter(~pl.col("kind").is_in(EXTENSION_KINDS)).select(_EDGE)
    known = associations.join(ends, left_on="from_id", right_on="topic_id")
    other = ends.select(to_id="topic_id", _salience="salience", _pinned="pinned", _held="held")
    both = known.join(other, on="to_id").with_columns(
        topic_id="from_id",
        salience=pl.min_horizontal("salience", "_salience"),
        pinned=pl.col("pinned") | pl.col("_pinned"),
        held=pl.col("held") | pl.col("_held"),
    )
    marked = both.join(ladder.edges.with_columns(_is=True), on=_EDGE, how="left")
    low = pl.col("salience") < pl.col("theta_detach")
    return _changed(marked, _may_detach(low), low & ~pl.col("pinned"), "theta_detach")


def _may_detach(low: pl.Expr) -> pl.Expr:
    ruled = (pl.col("action") == "detach").fill_null(False)
    faded = pl.col("action").is_null() & low & pl.col("pressure")
    return (ruled | faded) & ~pl.col("pinned") & ~pl.col("held")


def _changed(known: pl.DataFrame, due: pl.Expr, stays: pl.Expr, limit: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that take the step, which are due, and rows that reverse it, which are neither due nor below the limit."""
    step = known.with_columns(_due=due, _stays=stays, _is=pl.col("_is").fill_null(False))
    low = pl.format("salience {} is below {}", "salience", limit)
    ruled = pl.format("rule {} asks for it", "rule")
    taken = step.filter(pl.col("_due") & ~pl.col("_is")).with_columns(
        reason=pl.when(pl.col("action").is_not_null()).then(ruled).otherwise(low)
    )
    back = step.filter(pl.col("_is") & ~pl.col("_due") & ~pl.col("_stays")).with_columns(
        reason=pl.format("salience {} is not below {} any more", "salience", limit)
    )
    return taken, back
