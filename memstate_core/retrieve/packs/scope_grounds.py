"""What may speak against packed items in one scope, read from its snapshot once.

That is verification records and open reviews, by topic, and notes of evidence.
Invariant: nothing here names a topic of another scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.text import iso, iso_expr
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.packs.recall_warnings import Row
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.graph import FIELD, REVIEW, REVISION, TOPIC

DEPENDENTS = "dependents"
"""The check behind records that follow from the review queue: what a topic extends has changed."""

Tables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
"""Fields and revisions of the topics with the records of a scope, and its reviews."""


@dataclass(frozen=True)
class ScopeGrounds:
    """What speaks against the topics of a scope.

    Attributes:
        records: the latest verification records and those that open reviews stand for, by topic.
        notes: what evidence notes (columns NOTES_INDEX).
    """

    records: dict[str, list[Row]]
    notes: pl.DataFrame

    def records_of(self, ids: Iterable[str]) -> list[Row]:
        """The records about some topics."""
        return [record for topic_id in ids for record in self.records.get(topic_id, ())]

    def notes_of(self, citations: Sequence[Row]) -> list[Row]:
        """What the cited evidence notes, and all evidence of topics that are cited as a whole."""
        if self.notes.is_empty():
            return []
        cited = {one for each in citations for one in each.get("evidence_ids") or ()}
        whole = {each["topic_id"] for each in citations if each["kind"] in ("topic", "resource")}
        turns = [f"{each['topic_id']}\0{each['observation_id']}" for each in citations if "observation_id" in each]
        pair = pl.concat_str("topic_id", pl.lit("\0"), "observation_id")
        mine = pl.col("evidence_id").is_in(list(cited)) | pl.col("topic_id").is_in(list(whole)) | pair.is_in(turns)
        return list[Row](self.notes.filter(mine.fill_null(False)).to_dicts())


def current_grounds(reader: SnapshotReader, scope: str) -> ScopeGrounds:
    """The grounds of a scope as of the snapshot."""
    return _grounds(reader, scope, _current_tables(reader, scope))


def past_grounds(reader: SnapshotReader, scope: str, as_of: datetime) -> ScopeGrounds:
    """The grounds of a scope as known at a moment; notes are evidence, and stay."""
    past = reader.past(scope, as_of)
    mine = pl.col("topic_id").is_in(past.topics.filter(pl.col("topic_kind") == VERIFICATION)["id"].implode())
    return _grounds(reader, scope, (past.fields.filter(mine), past.revisions.filter(mine), past.reviews))


def topics_within(reader: SnapshotReader, ids: Iterable[str], scopes: Sequence[str]) -> set[str]:
    """Those of some topics that are in these scopes, whatever their state."""
    served = {topic_id for topic_id in ids if any(topic_id in reader.topics(scope).places for scope in scopes)}
    left = sorted(set(ids) - served)
    where = "r.id IN $ids AND r.scope IN $scopes"
    return served | set(reader.graph.read(TOPIC, ["id"], where, ids=left, scopes=[*scopes])["id"] if left else ())


def _current_tables(reader: SnapshotReader, scope: str) -> Tables:
    where = "r.scope = $scope AND r.topic_kind = $kind AND r.state = $state"
    given = {"scope": scope, "kind": VERIFICATION, "state": SERVED_STATE}
    owners = reader.graph.read(TOPIC, ["id"], where, **given)["id"].to_list()
    if (current := reader.facts(scope)) is not None:
        mine, tables = pl.col("topic_id").is_in(owners), current.tables
        return tables["fields"].filter(mine), tables["revisions"].filter(mine), tables["reviews"]
    fields, revisions = (reader.graph.read(t, where="r.topic_id IN $ids", ids=owners) for t in (FIELD, REVISION))
    return fields, revisions, reader.graph.read(REVIEW)


def _grounds(reader: SnapshotReader, scope: str, tables: Tables) -> ScopeGrounds:
    fields, revisions, reviews = tables
    about = fields.filter(pl.col("ref_topic_id").is_not_null()).select("topic_id", "name", about="ref_topic_id")
    latest = revisions.filter((pl.col("rank") == 0) & (pl.col("part") == "field")).join(about, on=["topic_id", "name"])
    rows = latest.sort("about", "name").select("about", "value_json", iso_expr(pl.col("valid_from")))
    known = topics_within(reader, set(reviews["cause_topic_id"]), [scope])
    waiting = reviews.filter(pl.col("cause_topic_id").is_in(known)).sort("topic_id", "hops", "id")
    records: dict[str, list[Row]] = {}
    for record in [*(_record(*row) for row in rows.iter_rows()), *map(_stale, waiting.to_dicts())]:
        records.setdefault(record["topic_id"], []).append(record)
    return ScopeGrounds(records, reader.notes.filter(pl.col("scope") == scope).collect())


def _record(topic_id: str, value_json: str, checked_at: str | None) -> Row:
    value = msgjson.decode(value_json)
    own = {name: value[name] for name in ("check", "target", "status", "message")}
    return own | {"topic_id": topic_id, "checked_at": checked_at}


def _stale(review: dict[str, Any]) -> Row:
    return {
        "check": DEPENDENTS,
        "target": f"topic:{review['topic_id']}",
        "status": "stale",
        "message": review["reason"],
        "topic_id": review["topic_id"],
        "checked_at": iso(review["queued_at"]),
    }
