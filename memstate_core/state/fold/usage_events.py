"""Events that change the salience of topics and fields: evidence and accesses.

An access of a topic counts for the topic and for the fields it names, or for all of them if it names none. It
follows aliases and merges, so an access to a merged topic counts for the survivor; no access counts for a topic of
another scope.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, empty, project
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.identity import answering

ACCESS_EVENTS: Schema = {
    "access_id": pl.String,
    "topic_id": pl.String,
    "name": pl.String,
    "at": MOMENT,
    "weight": pl.Float64,
    "failed": pl.Boolean,
}
"""Accesses of topics: `name` is a field's, or null if the topic as a whole was accessed."""


def access_events(
    accesses: pl.DataFrame, aliases: pl.DataFrame, followed: pl.DataFrame, scopes: pl.DataFrame, policy: Policy
) -> pl.DataFrame:
    """Accesses as events (columns ACCESS_EVENTS), each field on a row of its own.

    Args:
        accesses: columns ACCESSES; an access that was recorded twice counts once.
        aliases: columns ALIASES.
        followed: columns dropped, survivor.
        scopes: the scope of each topic (columns topic_id, scope); an access that names another one does not count.
        policy: gives the weight of an access.
    """
    if accesses.is_empty():
        return empty(ACCESS_EVENTS)
    once = accesses.unique("access_id").sort("access_id")
    moved = once.with_columns(
        topic_id=answering(pl.col("topic_id"), aliases, followed), weight=pl.lit(policy.query_salience_bump)
    )
    known = moved.join(scopes.rename({"scope": "_scope"}), on="topic_id", how="left", maintain_order="left")
    own = known.filter(pl.col("scope").is_null() | (pl.col("scope") == pl.col("_scope")))
    named = own.explode("fields", empty_as_null=True).rename({"fields": "name"})
    return project(named.unique(["access_id", "name"], maintain_order=True), ACCESS_EVENTS)


def topic_events(evidence_events: pl.DataFrame, used: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Events of topics as a whole (columns topic_id, at, weight, failed).

    Args:
        evidence_events: evidence of topics (columns topic_id, at).
        used: what `access_events` gives; an access that names several fields is one event.
        policy: gives the weight of evidence.
    """
    own = _weighted(evidence_events, policy)
    return pl.concat([own, used.unique(["access_id", "topic_id"], maintain_order=True).select(own.columns)])


def field_events(evidence_events: pl.DataFrame, used: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Events of fields (columns topic_id, name, at, weight, failed).

    Args:
        evidence_events: values of fields (columns topic_id, name, at).
        used: what `access_events` gives; a name that the topic has no field of is left out.
        policy: gives the weight of evidence.
    """
    own = _weighted(evidence_events, policy)
    if not used.height:
        return own
    there = evidence_events.select("topic_id", "name").unique()
    whole = used.filter(pl.col("name").is_null()).drop("name").join(there, on="topic_id")
    named = used.join(there, on=["topic_id", "name"], how="semi")
    return pl.concat([own, whole.select(own.columns), named.select(own.columns)])


def _weighted(evidence_events: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    return evidence_events.with_columns(weight=pl.lit(policy.field_salience_initial), failed=pl.lit(False))
