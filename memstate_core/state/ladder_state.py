"""Where recorded decisions left topics, fields and links on the ladder of forgetting, and what is pinned.

Every step is a transition with its reason, and so is its way back. What holds is the last word on each
topic, field or link: nothing of it is stored anywhere else, so taking a step back is never having taken it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.state.decisions import (
    ARCHIVED,
    ATTACHED,
    DETACHED,
    EXPANDED,
    PINNED,
    RESTORED,
    SUMMARISED,
    UNPINNED,
)

LINK = pl.Struct({"to": pl.String, "kind": pl.String})
PAYLOAD = pl.Struct(
    {
        "salience": pl.Float64,
        "by": pl.String,
        "active": pl.Int64,
        "fields": pl.List(pl.String),
        "edges": pl.List(LINK),
        "keep": pl.Int64,
        "actor": pl.String,
        "last_event_at": pl.String,
    }
)
"""Payload of a ladder decision. `by` says what asked for it (threshold, bound, rule, evidence, access), `active`
how many topics of the scope were active then, with those that came back that night; `keep` how many revisions a
summary leaves as they are; `last_event_at` stands in what a person took back."""
_TAKEN = {ARCHIVED: RESTORED, DETACHED: ATTACHED, SUMMARISED: EXPANDED, PINNED: UNPINNED}
"""Each step and what takes it back."""


@dataclass(frozen=True)
class LadderState:
    """What stands where.

    Attributes:
        archived: column topic_id.
        fields: detached fields (columns topic_id, name).
        edges: detached links (columns from_id, to_id, kind).
        summaries: fields whose older revisions are summarised (columns topic_id, name, keep).
        pins: column topic_id, as decided (not followed through merges).
        held: topics that a person brought back, which the ladder leaves alone until another event concerns
            them (columns topic_id, last_event_at: text of the last event when it was brought back).
    """

    archived: pl.DataFrame
    fields: pl.DataFrame
    edges: pl.DataFrame
    summaries: pl.DataFrame
    pins: pl.DataFrame
    held: pl.DataFrame


def ladder_state(decisions: pl.DataFrame) -> LadderState:
    """Reads the ladder's decisions (at least columns DECISION, in their order)."""
    rows = decisions.filter(pl.col("kind").is_in([*_TAKEN, *_TAKEN.values()])).select(
        "kind", "topic_id", "payload_json"
    )
    told = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(PAYLOAD)).unnest("_payload")
    fields = told.explode("fields", empty_as_null=True).rename({"fields": "name"})
    link = pl.col("edges").struct
    links = told.explode("edges", empty_as_null=True).filter(pl.col("edges").is_not_null())
    links = links.with_columns(from_id="topic_id", to_id=link.field("to"), _of=link.field("kind"))
    return LadderState(
        archived=_in_force(told, ["topic_id"], ARCHIVED).drop("keep"),
        fields=_in_force(fields, ["topic_id", "name"], DETACHED).drop("keep"),
        edges=_in_force(links, ["from_id", "to_id", "_of"], DETACHED).drop("keep").rename({"_of": "kind"}),
        summaries=_in_force(fields, ["topic_id", "name"], SUMMARISED),
        pins=_in_force(told, ["topic_id"], PINNED).drop("keep"),
        held=told.filter(pl.col("last_event_at").is_not_null())
        .group_by("topic_id", maintain_order=True)
        .agg(pl.col("last_event_at").last()),
    )


def _in_force(rows: pl.DataFrame, key: list[str], step: str) -> pl.DataFrame:
    """What a step was taken for and not taken back since (columns `key` and keep), in the order of the first word."""
    own = rows.filter(pl.col("kind").is_in([step, _TAKEN[step]]) & pl.all_horizontal(pl.col(key).is_not_null()))
    last = own.group_by(key, maintain_order=True).agg(pl.col("kind", "keep").last())
    return last.filter(pl.col("kind") == step).drop("kind")
