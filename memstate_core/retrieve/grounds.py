"""What speaks against the items of a pack, read from snapshots: relations, verification records, notes of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.text import iso, iso_expr
from memstate_core.retrieve.current import candidate_edges
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.recall_warnings import (
    Grounds,
    PackedItem,
    Row,
    Workspace,
    recall_warnings,
    verification_warnings,
)
from memstate_core.retrieve.scope_facts import Edge
from memstate_core.state.graph import FIELD, REVIEW, REVISION, TOPIC

DEPENDENTS = "dependents"
"""The check behind records that follow from the review queue: what a topic extends has changed."""

_NO_HOMES = pl.DataFrame(schema={"id": pl.String, "scope": pl.String})
_RELATIONS = ("contradicts", "supersedes")


def with_warnings(
    pack: dict[str, Any],
    readers: Sequence[SnapshotReader],
    scopes: Iterable[str] | None,
    workspace: Workspace | None,
    as_of: datetime | None,
) -> dict[str, Any]:
    """A context pack with `recall_warnings` and `verification_warnings` about what it cites.

    Args:
        pack: the result of `memstate_core.retrieve.context.context_pack`.
        readers: the open snapshots that it was made from.
        scopes: the scopes that were asked for; None for all.
        workspace: where the question is asked from; None warns of no drift.
        as_of: the moment that the pack is about, if not the present.
    """
    items = packed_items(pack["citations"])
    grounds = read_grounds(readers, pack["citations"], scopes, as_of)
    return pack | {
        "recall_warnings": recall_warnings(items, grounds, workspace),
        "verification_warnings": verification_warnings(items, grounds.records),
    }


def packed_items(citations: Sequence[Row]) -> list[PackedItem]:
    """What the lines of a pack cite, without evidence that no topic holds."""
    return [
        PackedItem(each["topic_id"], None if (ids := each.get("evidence_ids")) is None else tuple(ids))
        for each in citations
        if each["topic_id"] is not None
    ]


def read_grounds(
    readers: Sequence[SnapshotReader], citations: Sequence[Row], scopes: Iterable[str] | None, as_of: datetime | None
) -> Grounds:
    """What the snapshots hold about cited topics and evidence."""
    ids = sorted({each["topic_id"] for each in citations if each["topic_id"] is not None})
    hints = {each["scope"] for each in citations if each.get("scope")} | set(scopes or ())
    relations: list[Row] = []
    records: list[Row] = []
    notes: list[Row] = []
    titles: dict[str, str] = {}
    for reader in readers:
        homes = _homes(reader, ids, hints)
        if homes.is_empty():
            continue
        own, where = homes["id"].to_list(), homes["scope"].unique().sort().to_list()
        relations += _relations(reader, where, own, as_of).to_dicts()
        records += _records(reader, where, own, as_of)
        notes += _notes(reader, where, citations).to_dicts()
        for scope in where if relations else ():
            titles |= dict(reader.topics(scope).frame.select("id", "title").iter_rows())
    return Grounds(relations, records, notes, titles)


def _homes(reader: SnapshotReader, ids: list[str], hints: set[str]) -> pl.DataFrame:
    """The topics with these ids (columns id, scope): of the scopes that were asked for, then of the whole graph."""
    served = [reader.topics(scope).frame.select("id", "scope") for scope in reader.scopes if scope in hints]
    found = pl.concat([_NO_HOMES, *served]).filter(pl.col("id").is_in(ids))
    known = set(found["id"])
    left = [each for each in ids if each not in known]
    return found.vstack(reader.graph.read(TOPIC, ["id", "scope"], "r.id IN $ids", ids=left)) if left else found


def _within(reader: SnapshotReader, ids: set[str], scopes: list[str]) -> set[str]:
    """The ids of topics in these scopes: nothing that a scope is warned of names a topic of another one."""
    if not ids:
        return set()
    where = "r.id IN $ids AND r.scope IN $scopes"
    return set(reader.graph.read(TOPIC, ["id"], where, ids=sorted(ids), scopes=scopes)["id"])


def _relations(reader: SnapshotReader, scopes: list[str], ids: list[str], as_of: datetime | None) -> pl.DataFrame:
    edges = candidate_edges(reader, scopes, ids, as_of=as_of, explicit=False)
    kept = {edge for edge in edges if edge.kind in _RELATIONS}
    known = _within(reader, {end for edge in kept for end in (edge.from_id, edge.to_id)}, scopes)
    mine = sorted(edge for edge in kept if {edge.from_id, edge.to_id} <= known)
    return pl.DataFrame(mine, schema=dict.fromkeys(Edge._fields, pl.String), orient="row")


def _records(reader: SnapshotReader, scopes: list[str], ids: list[str], as_of: datetime | None) -> list[Row]:
    """The latest verification records of topics, and those that the review queue stands for."""
    found: list[Row] = []
    for scope in scopes:
        fields, revisions, reviews = _tables(reader, scope, as_of)
        mine = fields.filter(pl.col("ref_topic_id").is_in(ids)).select("topic_id", "name", about="ref_topic_id")
        latest = revisions.filter((pl.col("rank") == 0) & (pl.col("part") == "field")).join(
            mine, on=["topic_id", "name"]
        )
        rows = latest.sort("about", "name").select("about", "value_json", iso_expr(pl.col("valid_from")))
        found += [_record(*row) for row in rows.iter_rows()]
        waiting = reviews.filter(pl.col("topic_id").is_in(ids)).sort("topic_id", "hops", "id")
        known = _within(reader, set(waiting["cause_topic_id"]), [scope])
        waiting = waiting.filter(pl.col("cause_topic_id").is_in(known))
        found += [_stale(row) for row in waiting.to_dicts()]
    return found


def _tables(
    reader: SnapshotReader, scope: str, as_of: datetime | None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Fields and revisions of the topic with the records of a scope, and the reviews of the scope."""
    if as_of is not None:
        past = reader.past(scope, as_of)
        own = past.topics.filter(pl.col("topic_kind") == VERIFICATION)["id"].implode()
        mine = pl.col("topic_id").is_in(own)
        return past.fields.filter(mine), past.revisions.filter(mine), past.reviews
    owners = reader.record_topics(scope)
    if (current := reader.facts(scope)) is not None:
        mine = pl.col("topic_id").is_in(owners)
        tables = current.tables
        return tables["fields"].filter(mine), tables["revisions"].filter(mine), tables["reviews"]
    fields, revisions = (reader.graph.read(t, where="r.topic_id IN $ids", ids=owners) for t in (FIELD, REVISION))
    return fields, revisions, reader.graph.read(REVIEW)


def _record(topic_id: str, value_json: str, checked_at: str | None) -> Row:
    value = msgjson.decode(value_json)
    return {name: value[name] for name in ("check", "target", "status", "message")} | {
        "topic_id": topic_id,
        "checked_at": checked_at,
    }


def _stale(review: dict[str, Any]) -> Row:
    return {
        "check": DEPENDENTS,
        "target": f"topic:{review['topic_id']}",
        "status": "stale",
        "message": review["reason"],
        "topic_id": review["topic_id"],
        "checked_at": iso(review["queued_at"]),
    }


def _notes(reader: SnapshotReader, scopes: list[str], citations: Sequence[Row]) -> pl.DataFrame:
    """What the cited evidence notes."""
    cited = {one for each in citations for one in each.get("evidence_ids") or ()}
    whole = {each["topic_id"] for each in citations if each["kind"] in ("topic", "resource")}
    turns = [f"{each['topic_id']}\0{each['observation_id']}" for each in citations if "observation_id" in each]
    pair = pl.concat_str("topic_id", pl.lit("\0"), "observation_id")
    mine = (
        pl.col("evidence_id").is_in(list(cited)) | pl.col("topic_id").is_in(list(whole)) | pair.is_in(turns)
    ).fill_null(False)
    return reader.notes.filter(pl.col("scope").is_in(scopes) & mine).collect()
