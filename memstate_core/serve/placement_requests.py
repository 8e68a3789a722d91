"""Placement requests in the wire format of MemState's clients, and the keys that they read in the answer.

Such a request is one observation with a few differences, recognised by the key `suggest_similar`, which those clients
always send: a null reference means none and a blank one clears it, a title may be blank, and each field names its
provenance. Everything else follows the rules for observations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.ingest.evidence_frame import EVIDENCE_ID_LENGTH
from memstate_core.ingest.validation.validate import RECORD, Record
from memstate_core.model.errors import TopicNotFound
from memstate_core.model.ids import uuid_text
from memstate_core.model.observation import Observation
from memstate_core.model.parts import EdgeTo, FieldValue
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.similar import similar_topics
from memstate_core.retrieve.views.topic import resolve
from memstate_core.serve.observations import Accepted
from memstate_core.state.graph import REVISION

SUGGEST = "suggest_similar"
UNTITLED = "untitled"
_COLUMN = {name: place for place, name in enumerate(RECORD)}
_KNOWN = {
    "": frozenset(Observation.__struct_fields__),
    "fields": frozenset(FieldValue.__struct_fields__),
    "edges": frozenset(EdgeTo.__struct_fields__),
}
_MAX_IGNORED = 100


@dataclass(frozen=True)
class Request:
    """A request for one observation.

    Attributes:
        line: the observation, on one line.
        suggest: whether to return similar topics; None if the request does not specify it.
        ignored: keys without meaning here; they are kept with the evidence.
    """

    line: bytes
    suggest: bool | None
    ignored: list[str]


def request(line: bytes) -> Request:
    """Parses a request; anything but a JSON object passes unchanged and is refused by validation."""
    try:
        body = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return Request(line, None, [])
    if not isinstance(body, dict):
        return Request(line, None, [])
    suggest = body.get(SUGGEST)
    if SUGGEST not in body or not isinstance(suggest, bool | None):
        return Request(line, None, _unknown(body))
    del body[SUGGEST]
    _to_observation(body)
    return Request(msgspec.json.encode(body), bool(suggest), _unknown(body))


def _to_observation(body: dict[str, Any]) -> None:
    """Converts a request of MemState's clients to an observation, in place."""
    fields = [field for field in _parts(body, "fields") if isinstance(field, dict)]
    for field in fields:
        if field.get("ref_topic_id", "") is None:
            del field["ref_topic_id"]
        elif field.get("ref_topic_id") == "":
            field["ref_topic_id"] = None
    sources = {field.get("provenance") for field in fields}
    if len(sources) == 1 and isinstance(next(iter(sources)), str) and body.get("provenance") is None:
        body["provenance"] = sources.pop()
        for field in fields:
            del field["provenance"]
    names_nothing = not any(body.get(name) for name in ("title", "text", "topic_id", "topic_key"))
    if body.get("placement") == "new_topic" and names_nothing:
        body["title"] = UNTITLED


def _parts(body: dict[str, Any], name: str) -> Sequence[Any]:
    parts = body.get(name)
    return parts if isinstance(parts, list) else []


def _unknown(body: dict[str, Any]) -> list[str]:
    """The keys that observations do not have, such as `salience` or `fields.provenance`."""
    found = body.keys() - _KNOWN[""]
    for name in ("fields", "edges"):
        parts = [part for part in _parts(body, name) if isinstance(part, dict)]
        found |= {f"{name}.{key}" for part in parts for key in part.keys() - _KNOWN[name]}
    return sorted(found)[:_MAX_IGNORED]


def describe_single(
    asked: Request, accepted: Accepted, readers: Sequence[SnapshotReader], encoder: Encoder | None
) -> dict[str, Any]:
    """The additional keys of the answer to a request with a single observation.

    If the request does not specify whether it wants similar topics, they are found by terms alone, which is cheap.

    Args:
        asked: the request.
        accepted: its observation.
        readers: the open snapshots of the store's shards.
        encoder: their model, used only if similar topics are requested.
    """
    record, topic_id = accepted.records[0], accepted.topic_ids[0]
    text = "\n".join(part for name in ("title", "summary") if (part := record[_COLUMN[name]]))
    meaning = encoder if asked.suggest else None
    wanted = asked.suggest is not False
    scope = record[_COLUMN["scope"]]
    return {
        "observation_id": accepted.observation_ids[0],
        "topic_id": topic_id,
        "applied": applied(record, topic_id),
        "version_ids": version_ids(record, topic_id, readers),
        "similar_topic_ids": similar_topics(readers, scope, text, meaning, but=topic_id) if wanted else [],
        "ignored": asked.ignored,
    }


def add_neighbor_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Adds the key `id`, which MemState's clients read, to the neighbors in an answer."""
    for candidate in answer["candidates"]:
        candidate["neighbors"] = [neighbor | {"id": neighbor["topic_id"]} for neighbor in candidate["neighbors"]]
    return answer


def applied(record: Record, topic_id: str | None) -> list[str]:
    """The accepted parts of an observation in MemState's notation; never empty.

    Args:
        record: the observation (columns RECORD).
        topic_id: its topic, if known.
    """
    placement = record[_COLUMN["placement"]]
    verb = "version" if placement == "version_field" else "field"
    parts = [f"created_topic:{topic_id}"] if placement == "new_topic" and topic_id is not None else []
    parts += [f"{verb}:{field[0]}" for field in record[_COLUMN["fields"]]]
    parts += [f"edge:{to_id or to_key}" for _, to_id, to_key, *_ in record[_COLUMN["edges"]]]
    return parts or [f"observation:{record[_COLUMN['observation_id']]}"]


def version_ids(record: Record, topic_id: str | None, readers: Sequence[SnapshotReader]) -> dict[str, str]:
    """The revision id of each field value by field name, as the next run assigns it (`state.fold.history`).

    A value that repeats the one in the snapshot at that time is merged into that revision.
    """
    first = record[_COLUMN["content_sha256"]][:EVIDENCE_ID_LENGTH]
    own = {
        field[0]: uuid_text("revision", "field", field[0], first, str(position))
        for position, field in enumerate(record[_COLUMN["fields"]])
    }
    return own | (dict(_repeated(record, topic_id, readers)) if own and topic_id is not None else {})


def _repeated(record: Record, topic_id: str, readers: Sequence[SnapshotReader]) -> Iterator[tuple[str, str]]:
    """The fields whose value the snapshot already has at that time, with the ids of those revisions."""
    known = _histories(readers, record[_COLUMN["scope"]], topic_id, [field[0] for field in record[_COLUMN["fields"]]])
    if known is None:
        return
    for name, value, *_, since in record[_COLUMN["fields"]]:
        moment = _moment(since or record[_COLUMN["observed_at"]])
        before = known.filter(pl.col("name") == name)
        before = before if moment is None else before.filter(pl.col("valid_from") <= moment)
        if before.height and before["value_json"][0] == value:
            yield name, before["id"][0]


def _moment(text: str | None) -> datetime | None:
    return None if text is None else parse_moment(text)


def _histories(readers: Sequence[SnapshotReader], scope: str, topic_id: str, names: list[str]) -> pl.DataFrame | None:
    """The revisions of some fields of a topic of this scope, newest first; None if there is no such topic."""
    try:
        found = resolve(readers, topic_id, [scope])
    except TopicNotFound:
        return None
    where = "r.topic_id = $id AND r.part = 'field' AND r.name IN $names AND r.summarises IS NULL"
    columns = ["id", "name", "rank", "value_json", "valid_from"]
    return found.reader.graph.read(REVISION, columns, where, id=found.topic["id"][0], names=names).sort("rank")
