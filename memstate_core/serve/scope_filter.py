"""The scope filter: removes references to topics of other scopes from answers.

Answers are computed from the caller's scopes to begin with. This module removes the ids of other topics that the
caller's own topics carry: references of fields, edges, warnings, causes of staleness. A topic of another scope and one
that does not exist look the same. Which ids a caller may write to is in `memstate_core.serve.topic_ids`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.auth.principal import Principal
from memstate_core.state.graph import TOPIC

Document = dict[str, Any]


def redacted(document: Document, readers: Sequence[SnapshotReader], who: Principal) -> Document:
    """Removes from an answer what the caller may not see, in place.

    Args:
        document: the answer to a question, or the record of a topic.
        readers: the snapshots of the answer.
        who: the caller.
    """
    if who.scopes is None:
        return document
    records: list[Document] = document.get("candidates", [document])
    named = sorted({name for record in records for name in _named(record)})
    known = _within(named, readers, who.scopes) if named else set()
    for record in records:
        _clear(record, known)
    return document


def _within(ids: list[str], readers: Sequence[SnapshotReader], scopes: frozenset[str]) -> set[str]:
    """The ids of topics in these scopes. The graph filters, so a foreign id takes as long as an unknown one."""
    wanted = {"ids": ids, "scopes": sorted(scopes)}
    found = [reader.graph.read(TOPIC, ["id"], "r.id IN $ids AND r.scope IN $scopes", **wanted) for reader in readers]
    return {topic_id for frame in found for topic_id in frame["id"]}


def _fields(record: Document) -> list[Document]:
    fields = record.get("fields", [])
    return list(fields.values()) if isinstance(fields, dict) else fields


def _named(record: Document) -> Iterator[str]:
    """The ids of the other topics that a record mentions."""
    yield from (name for field in _fields(record) if (name := field["ref_topic_id"]) is not None)
    yield from (name for warning in record["warnings"] if (name := warning["related_topic_id"]) is not None)
    yield from (edge[end] for edge in record.get("edges", []) for end in ("from", "to"))
    yield from (neighbor["topic_id"] for neighbor in record.get("neighbors", []))
    yield from (record[name] for name in ("merged_into",) if record.get(name) is not None)
    if record.get("stale"):
        yield record["stale"]["cause_topic_id"]


def _clear(record: Document, known: set[str]) -> None:
    """Removes from a record the mentions of topics that are not known."""
    for field in _fields(record):
        if field["ref_topic_id"] not in known:
            field["ref_topic_id"] = None
    record["warnings"] = [kept for each in record["warnings"] if (kept := _warning(each, known)) is not None]
    if "edges" in record:
        record["edges"] = [edge for edge in record["edges"] if edge["from"] in known and edge["to"] in known]
    if "neighbors" in record:
        record["neighbors"] = [each for each in record["neighbors"] if each["topic_id"] in known]
    if record.get("merged_into") not in known and "merged_into" in record:
        record["merged_into"] = None
    if record.get("stale") and record["stale"]["cause_topic_id"] not in known:
        record["stale"] = None


def _warning(warning: Document, known: set[str]) -> Document | None:
    """A warning without the id of an unknown topic; None if it concerns nothing else."""
    related = warning["related_topic_id"]
    if related is None or related in known:
        return warning
    if warning["kind"] != "dangling_reference":
        return None
    message = f"field {warning['field']} refers to a topic that does not exist here"
    return warning | {"message": message, "related_topic_id": None}
