"""The topics that changed in a run, for C3: what its decisions name, and what differs from the base.

The evidence of each topic follows from the ledger and is compared with what the base served, and so are values and
edges. A change is therefore found even if the run recorded none.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import symmetric_difference
from memstate_core.night.checks.checked_state import CheckedState, Published, Tables
from memstate_core.night.checks.derived import derive
from memstate_core.state.fold import decisions as kinds

_CHANGED = ("topic_created", "topic_updated", kinds.MERGED, kinds.UNMERGED, kinds.MOVED)
_BY_HAND = (kinds.PINNED, kinds.UNPINNED, kinds.RESTORED)
_FIELDS_BY_HAND = (kinds.ATTACHED, kinds.EXPANDED)
"""Changes of a topic where they name fields of it; an edge that is attached again changes none of its ends."""
_PAYLOAD = pl.Struct({
    "survivor": pl.String, "others": pl.List(pl.String), "was": pl.String, "actor": pl.String,
    "fields": pl.List(pl.String),
})  # fmt: skip
_HOME = ["topic_id", "evidence_id"]
_VALUE = ["topic_id", "part", "name", "value_json", "valid_from", "evidence_ids"]
_EDGE = ["from_id", "kind", "evidence_ids"]


def recorded_changes(checked: CheckedState) -> pl.Series:
    """Topics that the last run's decisions changed."""
    rows = checked.recorded.last.filter(pl.col("kind").is_in([*_CHANGED, *_BY_HAND, *_FIELDS_BY_HAND]))
    payload = pl.col("payload_json").fill_null("{}").str.json_decode(_PAYLOAD)
    rows = rows.select("kind", "topic_id", _payload=payload).unnest("_payload")
    rows = rows.filter(pl.col("kind").is_in(_CHANGED) | pl.col("actor").is_not_null())
    rows = rows.filter(~pl.col("kind").is_in(_FIELDS_BY_HAND) | pl.col("fields").is_not_null())
    named = [rows["topic_id"], rows["survivor"], rows["was"], rows["others"].explode(empty_as_null=True)]
    ids = pl.DataFrame({"id": pl.concat(named).drop_nulls()})
    answering = ids.select(checked.derived.answering(pl.col("id")))["id"]
    return pl.concat([answering, _moved(checked)]).unique()


def changes_of_references(checked: CheckedState) -> pl.Series:
    """Topics that a merge or its undo changed because one of their fields refers to a merged or unmerged topic."""
    merged = checked.recorded.last.filter(pl.col("kind").is_in([kinds.MERGED, kinds.UNMERGED]))
    payload = pl.col("payload_json").str.json_decode(_PAYLOAD).struct
    parts = merged.select("topic_id", survivor=payload.field("survivor"), others=payload.field("others"))
    ids = pl.concat([parts["topic_id"], parts["survivor"], parts["others"].explode(empty_as_null=True)]).drop_nulls()
    ends = pl.DataFrame({"id": ids}).select(checked.derived.answering(pl.col("id")))["id"]
    referring = pl.col("ref_topic_id").is_in(pl.concat([ids, ends, _moved(checked)]).unique().implode())
    return checked.graph.fields.filter(referring)["topic_id"].unique()


def changes_since(checked: CheckedState, base: Published) -> pl.Series:
    """Topics that have other evidence than in the base, and other values or edges."""
    evidence = symmetric_difference(checked.derived.homes.select(_HOME), base.held.drop_nulls("topic_id"))
    now, before = checked.graph, base.tables
    values = symmetric_difference(_values(now, checked.compressed), _values(before, base.compressed))
    edges = symmetric_difference(now.edges.select(_EDGE), before.edges)
    stated = pl.concat([values["topic_id"], edges["from_id"]])
    return evidence.filter(pl.col("topic_id").is_in(stated.implode()))["topic_id"].unique()


def _values(tables: Tables, compressed: pl.DataFrame) -> pl.DataFrame:
    """The values that evidence states, those behind summaries among them."""
    kept = tables.revisions.filter(pl.col("summarises").is_null())
    return pl.concat([kept.select(_VALUE), compressed.select(_VALUE)])


def _moved(checked: CheckedState) -> pl.Series:
    """Topics whose evidence changed because merges were undone."""
    if checked.recorded.last.filter(pl.col("kind") == kinds.UNMERGED).is_empty():
        return pl.Series(dtype=pl.String)
    before, now = derive(checked.recorded.before()).homes, checked.derived.homes
    return symmetric_difference(now.select(_HOME), before.select(_HOME))["topic_id"].unique()
