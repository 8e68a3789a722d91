"""What speaks against the items of a pack, read from snapshots: relations, verification records, notes of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from memstate_core.retrieve.candidate_facts import candidate_edges
from memstate_core.retrieve.packs.recall_warnings import (
    Grounds,
    PackedItem,
    Row,
    Workspace,
    recall_warnings,
    verification_warnings,
)
from memstate_core.retrieve.packs.scope_grounds import current_grounds, past_grounds, topics_within
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.graph import TOPIC

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
        pack: the result of `memstate_core.retrieve.packs.context.context_pack`.
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
    found = [
        _of_snapshot(reader, homes, citations, as_of)
        for reader in readers
        if (homes := _homes(reader, ids, sorted(hints.intersection(reader.scopes))))
    ]
    return Grounds(
        [row for each in found for row in each.relations],
        [row for each in found for row in each.records],
        [row for each in found for row in each.notes],
        {topic_id: title for each in found for topic_id, title in (each.titles or {}).items()},
    )


def _of_snapshot(
    reader: SnapshotReader, homes: dict[str, str], citations: Sequence[Row], as_of: datetime | None
) -> Grounds:
    ids, scopes = sorted(homes), sorted(set(homes.values()))
    grounds = [
        reader.derived(current_grounds, scope) if as_of is None else past_grounds(reader, scope, as_of)
        for scope in scopes
    ]
    relations = _relations(reader, scopes, ids, as_of)
    return Grounds(
        relations,
        [record for each in grounds for record in each.records_of(ids)],
        [note for each in grounds for note in each.notes_of(citations)],
        _titles(reader, scopes, relations),
    )


def _titles(reader: SnapshotReader, scopes: list[str], relations: list[Row]) -> dict[str, str]:
    """The titles of the active topics among the ends of relations."""
    ends = {relation[end] for relation in relations for end in ("from_id", "to_id")}
    served = [reader.topics(scope) for scope in scopes]
    return {
        end: topics.columns["title"][topics.places[end]] for topics in served for end in ends & topics.places.keys()
    }


def _homes(reader: SnapshotReader, ids: list[str], scopes: list[str]) -> dict[str, str]:
    """The scope of each topic of this snapshot: one of those that were asked for, or what the whole graph says."""
    found = {topic_id: scope for scope in scopes for topic_id in ids if topic_id in reader.topics(scope).places}
    for scope in scopes if len(found) < len(ids) else ():
        found |= dict.fromkeys(reader.derived(_with_evidence, scope).intersection(ids), scope)
    left = [topic_id for topic_id in ids if topic_id not in found]
    return found | dict(reader.graph.read(TOPIC, ["id", "scope"], "r.id IN $ids", ids=left).rows()) if left else found


def _with_evidence(reader: SnapshotReader, scope: str) -> frozenset[str]:
    """The topics of a scope that hold evidence, archived ones too."""
    return frozenset(reader.evidence(scope).frame["topic_id"].drop_nulls())


def _relations(reader: SnapshotReader, scopes: list[str], ids: list[str], as_of: datetime | None) -> list[Row]:
    """The edges in force that warn, both of whose topics are in these scopes."""
    edges = candidate_edges(reader, scopes, ids, as_of=as_of, explicit=False)
    kept = {edge for edge in edges if edge.kind in _RELATIONS}
    known = topics_within(reader, {end for edge in kept for end in (edge.from_id, edge.to_id)}, scopes)
    return [edge._asdict() for edge in sorted(kept) if {edge.from_id, edge.to_id} <= known]
