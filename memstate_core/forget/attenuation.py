"""The lower steps of the ladder: histories that are summarised, fields and links that are detached.

Summarising concerns fields below `summarise_salience_threshold` with more revisions than are kept. Detaching
concerns fields, and association links, below `detach_salience_threshold` in scopes under pressure; a link is as
salient as the less salient of its topics, and extension links stay, since others depend on what they say. What
rises again above its threshold comes back by itself.
"""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.edges import EXTENSION_KINDS
from memstate_core.state.ladder_state import Rungs

_FIELD = ["topic_id", "name"]
_LINK = ["from_id", "to_id", "kind"]
_STANDING = ["topic_id", "scope", "action", "rule", "pinned", "held", "pressure", "theta_summarise", "theta_detach"]


def summaries(
    fields: pl.DataFrame, topics: pl.DataFrame, stand: Rungs, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields whose histories are to be summarised, and those to be expanded again.

    Args:
        fields: columns topic_id, name, salience, revisions (how many there are in full).
        topics: what `standing` gives, with `rule` and `action`.
        stand: where earlier decisions left fields.
        policy: says how many revisions stay as they are.

    Returns:
        Two frames: columns topic_id, scope, name, salience, reason.
    """
    known = fields.join(topics.select(_STANDING), on="topic_id").join(
        stand.summaries.with_columns(_is=True), on=_FIELD, how="left"
    )
    ruled = (pl.col("action") == "summarise").fill_null(False)
    low = pl.col("action").is_null() & (pl.col("salience") < pl.col("theta_summarise"))
    long = pl.col("revisions") > policy.summary_keep_revisions + 1
    due = (ruled | low) & long & ~pl.col("pinned") & ~pl.col("held")
    return _changed(known, due, long & ~ruled & (pl.col("salience") < pl.col("theta_summarise")), "theta_summarise")


def detached_fields(fields: pl.DataFrame, topics: pl.DataFrame, stand: Rungs) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields to detach, and those to attach again; arguments and results as of `summaries`."""
    known = fields.join(topics.select(_STANDING), on="topic_id").join(
        stand.fields.with_columns(_is=True), on=_FIELD, how="left"
    )
    low = pl.col("salience") < pl.col("theta_detach")
    due = _may_detach(low)
    return _changed(known, due, low & ~pl.col("pinned"), "theta_detach")


def detached_links(edges: pl.DataFrame, topics: pl.DataFrame, stand: Rungs) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Association links to detach, and those to attach again.

    Args:
        edges: columns from_id, to_id, kind.
        topics: what `standing` gives, with `rule` and `action`.
        stand: where earlier decisions left links.

    Returns:
        Two frames: columns topic_id (where the link starts), scope, to_id, kind, salience, reason.
    """
    ends = topics.select(*_STANDING, "salience")
    loose = edges.filter(~pl.col("kind").is_in(EXTENSION_KINDS)).select(_LINK)
    known = loose.join(ends, left_on="from_id", right_on="topic_id")
    other = ends.select(to_id="topic_id", _salience="salience", _pinned="pinned", _held="held")
    both = known.join(other, on="to_id").with_columns(
        topic_id="from_id",
        salience=pl.min_horizontal("salience", "_salience"),
        pinned=pl.col("pinned") | pl.col("_pinned"),
        held=pl.col("held") | pl.col("_held"),
    )
    marked = both.join(stand.edges.with_columns(_is=True), on=_LINK, how="left")
    low = pl.col("salience") < pl.col("theta_detach")
    return _changed(marked, _may_detach(low), low & ~pl.col("pinned"), "theta_detach")


def _may_detach(low: pl.Expr) -> pl.Expr:
    ruled = (pl.col("action") == "detach").fill_null(False)
    faded = pl.col("action").is_null() & low & pl.col("pressure")
    return (ruled | faded) & ~pl.col("pinned") & ~pl.col("held")


def _changed(known: pl.DataFrame, due: pl.Expr, stays: pl.Expr, limit: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What takes a step and what comes back: the former is due, the latter neither due nor below its limit."""
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
