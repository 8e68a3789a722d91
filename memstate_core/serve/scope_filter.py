"""What a caller with some scopes only may see of an answer, and name: no topic beyond them.

Answers come from the caller's scopes to begin with. What is taken out here are names of other topics that the
caller's own topics carry: what fields refer to, links, warnings, why a topic waits for review. A topic of another
scope and one that does not exist look the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from memstate_core.ingest.reasons import Reason
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.auth.principal import Principal
from memstate_core.serve.observations import ObservationsRefused
from memstate_core.state.graph import TOPIC

Document = dict[str, Any]
_MADE_HERE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}").fullmatch


def redacted(document: Document, readers: Sequence[SnapshotReader], who: Principal) -> Document:
    """An answer as somebody may see it; it is changed in place.

    Args:
        document: the answer to a question, or the record of a topic.
        readers: the snapshots that it is from.
        who: asks.
    """
    if who.scopes is None:
        return document
    records: list[Document] = document.get("candidates", [document])
    named = sorted({name for record in records for name in _named(record)})
    known = _within(named, readers, who.scopes) if named else set[str]()
    for record in records:
        _clear(record, known)
    return document


def check_topic_ids(given: Sequence[tuple[int, str, str]], readers: Sequence[SnapshotReader]) -> None:
    """Stops observations that take a topic's id which nobody in their scope has.

    An id belongs to the scope that used it first, by the time of observations. Who writes to some scopes only could
    date an observation back and so take an id of another scope; and whether an id is free would tell that it is
    used elsewhere. Ids as `memstate_core.model.ids` makes them belong to the scope that they are made of.

    Args:
        given: for each observation that names a topic by id its place, its scope and the id.
        readers: the open snapshots.

    Raises:
        ObservationsRefused: names each that does.
    """
    doubtful = [(place, scope, name) for place, scope, name in given if not _MADE_HERE(name)]
    names, scopes = sorted({name for _, _, name in doubtful}), frozenset(scope for _, scope, _ in doubtful)
    known = _homes(names, readers, scopes) if names else {}
    expected = "the id of a topic in its scope; `topic_key` names a new one"
    refusals = [
        (place, Reason.BAD_VALUE.value, f"$.topic_id is {name[:100]!r}, expected {expected}")
        for place, scope, name in doubtful
        if known.get(name) != scope
    ]
    if refusals:
        raise ObservationsRefused(refusals)


def _within(ids: list[str], readers: Sequence[SnapshotReader], scopes: frozenset[str]) -> set[str]:
    """Those of the ids that name a topic of these scopes."""
    return set(_homes(ids, readers, scopes))


def _homes(ids: list[str], readers: Sequence[SnapshotReader], scopes: frozenset[str]) -> dict[str, str]:
    """The scope of each of the ids that names a topic of these scopes."""
    found = [reader.graph.read(TOPIC, ["id", "scope"], "r.id IN $ids", ids=ids) for reader in readers]
    is_visible = pl.col("scope").is_in(sorted(scopes))
    return {name: scope for frame in found for name, scope in frame.filter(is_visible).iter_rows()}


def _fields(record: Document) -> list[Document]:
    fields = record.get("fields", [])
    return list(fields.values()) if isinstance(fields, dict) else fields


def _named(record: Document) -> Iterator[str]:
    """Every topic that a record names beside its own."""
    yield from (name for field in _fields(record) if (name := field["ref_topic_id"]) is not None)
    yield from (name for warning in record["warnings"] if (name := warning["related_topic_id"]) is not None)
    yield from (edge[end] for edge in record.get("edges", []) for end in ("from", "to"))
    yield from (neighbor["topic_id"] for neighbor in record.get("neighbors", []))
    yield from (record[name] for name in ("merged_into",) if record.get(name) is not None)
    if record.get("stale"):
        yield record["stale"]["cause_topic_id"]


def _clear(record: Document, known: set[str]) -> None:
    """Takes out of a record what names a topic that is not known."""
    for field in _fields(record):
        if field["ref_topic_id"] not in known:
            field["ref_topic_id"] = None
    record["warnings"] = [told for each in record["warnings"] if (told := _warning(each, known)) is not None]
    if "edges" in record:
        record["edges"] = [edge for edge in record["edges"] if edge["from"] in known and edge["to"] in known]
    if "neighbors" in record:
        record["neighbors"] = [each for each in record["neighbors"] if each["topic_id"] in known]
    if record.get("merged_into") not in known and "merged_into" in record:
        record["merged_into"] = None
    if record.get("stale") and record["stale"]["cause_topic_id"] not in known:
        record["stale"] = None


def _warning(warning: Document, known: set[str]) -> Document | None:
    """A warning without the name of a topic that is not known; None where it is about nothing else."""
    related = warning["related_topic_id"]
    if related is None or related in known:
        return warning
    if warning["kind"] != "dangling_reference":
        return None
    message = f"field {warning['field']} refers to a topic that does not exist here"
    return warning | {"message": message, "related_topic_id": None}
