"""The state of topics, fields and edges on the ladder of forgetting, and the pins, by recorded decisions.

Every step and every reversal is a transition with its reason. The last decision on each topic, field or edge
is in force. Nothing of this is stored elsewhere, so a reversed step leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import empty
from memstate_core.state.fold.decisions import (
    ARCHIVED,
    ATTACHED,
    DETACHED,
    EXPANDED,
    PINNED,
    RESTORED,
    SUMMARISED,
    UNPINNED,
)

_EDGE = pl.Struct({"to": pl.String, "kind": pl.String})
PAYLOAD = pl.Struct(
    {
        "salience": pl.Float64,
        "by": pl.String,
        "active": pl.Int64,
        "fields": pl.List(pl.String),
        "edges": pl.List(_EDGE),
        "keep": pl.Int64,
        "actor": pl.String,
        "last_event_at": pl.String,
    }
)
"""Payload of a ladder decision. `by` names the trigger (threshold, bound, rule, evidence, access); `active` is how
many topics of the scope were active then, those restored that night included; `keep` is how many revisions a
summary leaves as they are; `last_event_at` is set in manual reversals only."""
STEPS = {ARCHIVED: RESTORED, DETACHED: ATTACHED, SUMMARISED: EXPANDED, PINNED: UNPINNED}
"""Each step and its reversal."""


@dataclass(frozen=True)
class LadderState:
    """The steps in force.

    Attributes:
        archived: column topic_id.
        fields: detached fields (columns topic_id, name).
        edges: detached edges (columns from_id, to_id, kind).
        summaries: fields whose older revisions are summarised (columns topic_id, name, keep).
        pins: column topic_id, as decided (not followed through merges).
        held: topics that were restored manually, which the ladder leaves alone until their next event (columns
            topic_id, last_event_at: text of the time of their last event when they were restored).
    """

    archived: pl.DataFrame
    fields: pl.DataFrame
    edges: pl.DataFrame
    summaries: pl.DataFrame
    pins: pl.DataFrame
    held: pl.DataFrame


def _targets(*names: str, **more: pl.DataType | type[pl.DataType]) -> pl.DataFrame:
    return empty(dict.fromkeys(names, pl.String) | more)


_AT_REST = LadderState(
    archived=_targets("topic_id"),
    fields=_targets("topic_id", "name"),
    edges=_targets("from_id", "to_id", "kind"),
    summaries=_targets("topic_id", "name", keep=pl.Int64),
    pins=_targets("topic_id"),
    held=_targets("topic_id", "last_event_at"),
)
"""No step is in force."""


def ladder_state(decisions: pl.DataFrame) -> LadderState:
    """Reads the ladder's decisions (at least columns DECISION, in their order)."""
    rows = decisions.filter(pl.col("kind").is_in([*STEPS, *STEPS.values()])).select("kind", "topic_id", "payload_json")
    if rows.is_empty():
        return _AT_REST
    decoded = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(PAYLOAD)).unnest("_payload")
    fields = decoded.explode("fields", empty_as_null=True).rename({"fields": "name"})
    edge = pl.col("edges").struct
    edges = decoded.explode("edges", empty_as_null=True).filter(pl.col("edges").is_not_null())
    edges = edges.with_columns(from_id="topic_id", to_id=edge.field("to"), _of=edge.field("kind"))
    return LadderState(
        archived=_in_force(decoded, ["topic_id"], ARCHIVED).drop("keep"),
        fields=_in_force(fields, ["topic_id", "name"], DETACHED).drop("keep"),
        edges=_in_force(edges, ["from_id", "to_id", "_of"], DETACHED).drop("keep").rename({"_of": "kind"}),
        summaries=_in_force(fields, ["topic_id", "name"], SUMMARISED),
        pins=_in_force(decoded, ["topic_id"], PINNED).drop("keep"),
        held=decoded.filter(pl.col("last_event_at").is_not_null())
        .group_by("topic_id", maintain_order=True)
        .agg(pl.col("last_event_at").last()),
    )


def _in_force(rows: pl.DataFrame, key: list[str], step: str) -> pl.DataFrame:
    """Targets of a step that was not reversed since (columns `key` and keep), in the order of their first decision."""
    own = rows.filter(pl.col("kind").is_in([step, STEPS[step]]) & pl.all_horizontal(pl.col(key).is_not_null()))
    last = own.group_by(key, maintain_order=True).agg(pl.col("kind", "keep").last())
    return last.filter(pl.col("kind") == step).drop("kind")
