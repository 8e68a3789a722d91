"""Placement requests as MemState's clients write them, and what they read in the answer.

Such a request is one observation (DESIGN section 7) with a few ways of its own, which are told by the key
`suggest_similar` that those clients always send. In it a reference of null is none at all and a blank one clears, a
title may be blank, and each field names its provenance. Everything else is read by the rules of every observation.
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
from memstate_core.model.observation import EdgeTo, FieldValue, Observation
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.similar import similar_topics
from memstate_core.retrieve.topic import resolve
from memstate_core.serve.observations import Taken
from memstate_core.state.graph import REVISION

SUGGEST = "suggest_similar"
UNTITLED = "untitled"
_COLUMN = {name: place for place, name in enumerate(RECORD)}
_KNOWN = {
    "": frozenset(Observation.__struct_fields__),
    "fields": frozenset(FieldValue.__struct_fields__),
    "edges": frozenset(EdgeTo.__struct_fields__),
}
_TOLD = 100


@dataclass(frozen=True)
class Request:
    """One observation as it was sent.

    Attributes:
        line: the observation, on one line.
        suggest: whether similar topics are wanted; None where the request does not say.
        ignored: keys that have no meaning here; they are kept with the evidence.
    """

    line: bytes
    suggest: bool | None
    ignored: list[str]


def request(line: bytes) -> Request:
    """Reads a request; what is no JSON object passes as it is, to be refused by those who know why."""
    try:
        said = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return Request(line, None, [])
    if not isinstance(said, dict):
        return Request(line, None, [])
    suggest = said.get(SUGGEST)
    if SUGGEST not in said or not isinstance(suggest, bool | None):
        return Request(line, None, _unknown(said))
    del said[SUGGEST]
    _respell(said)
    return Request(msgspec.json.encode(said), bool(suggest), _unknown(said))


def _respell(said: dict[str, Any]) -> None:
    """Spells a request of MemState's clients as an observation."""
    fields = [field for field in _parts(said, "fields") if isinstance(field, dict)]
    for field in fields:
        if field.get("ref_topic_id", "") is None:
            del field["ref_topic_id"]
        elif field.get("ref_topic_id") == "":
            field["ref_topic_id"] = None
    sources = {field.get("provenance") for field in fields}
    if len(sources) == 1 and isinstance(next(iter(sources)), str) and said.get("provenance") is None:
        said["provenance"] = sources.pop()
        for field in fields:
            del field["provenance"]
    names_nothing = not any(said.get(name) for name in ("title", "text", "topic_id", "topic_key"))
    if said.get("placement") == "new_topic" and names_nothing:
        said["title"] = UNTITLED


def _parts(said: dict[str, Any], name: str) -> Sequence[Any]:
    parts = said.get(name)
    return parts if isinstance(parts, list) else []


def _unknown(said: dict[str, Any]) -> list[str]:
    """The keys that an observation does not have, such as `salience` or `fields.provenance`."""
    found = said.keys() - _KNOWN[""]
    for name in ("fields", "edges"):
        parts = [part for part in _parts(said, name) if isinstance(part, dict)]
        found |= {f"{name}.{key}" for part in parts for key in part.keys() - _KNOWN[name]}
    return sorted(found)[:_TOLD]


def told_alone(
    asked: Request, taken: Taken, readers: Sequence[SnapshotReader], encoder: Encoder | None
) -> dict[str, Any]:
    """What the answer says of an observation that came alone, beside what it says of every one.

    Similar topics cost little where the request does not say whether they are wanted: words are compared alone.

    Args:
        asked: the request.
        taken: what was read of it.
        readers: the open snapshots of the store's shards.
        encoder: their model, which is asked only where similar topics are.
    """
    record, topic_id = taken.records[0], taken.topic_ids[0]
    text = "\n".join(part for name in ("title", "summary") if (part := record[_COLUMN[name]]))
    meaning = encoder if asked.suggest else None
    wanted = asked.suggest is not False
    scope = record[_COLUMN["scope"]]
    return {
        "observation_id": taken.observation_ids[0],
        "topic_id": topic_id,
        "applied": applied(record, topic_id),
        "version_ids": version_ids(record, topic_id, readers),
        "similar_topic_ids": similar_topics(readers, scope, text, meaning, but=topic_id) if wanted else [],
        "ignored": asked.ignored,
    }


def named_as_before(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a question, changed so that neighbours have their id under the key that MemState's clients read."""
    for candidate in answer["candidates"]:
        candidate["neighbors"] = [neighbor | {"id": neighbor["topic_id"]} for neighbor in candidate["neighbors"]]
    return answer


def applied(record: Record, topic_id: str | None) -> list[str]:
    """What of an observation was taken, in MemState's words; never empty, since all of it was.

    Args:
        record: the observation (columns RECORD).
        topic_id: its topic, where that is known.
    """
    placement = record[_COLUMN["placement"]]
    verb = "version" if placement == "version_field" else "field"
    told = [f"created_topic:{topic_id}"] if placement == "new_topic" and topic_id is not None else []
    told += [f"{verb}:{field[0]}" for field in record[_COLUMN["fields"]]]
    told += [f"edge:{to_id or to_key}" for _, to_id, to_key, *_ in record[_COLUMN["edges"]]]
    return told or [f"observation:{record[_COLUMN['observation_id']]}"]


def version_ids(record: Record, topic_id: str | None, readers: Sequence[SnapshotReader]) -> dict[str, str]:
    """The id of each field's revision by its name, as the next run gives it (`memstate_core.state.history`).

    A value that repeats the one which the snapshot has as of that time becomes part of that revision.
    """
    first = record[_COLUMN["content_sha256"]][:EVIDENCE_ID_LENGTH]
    own = {
        field[0]: uuid_text("revision", "field", field[0], first, str(position))
        for position, field in enumerate(record[_COLUMN["fields"]])
    }
    return own | (dict(_repeated(record, topic_id, readers)) if own and topic_id is not None else {})


def _repeated(record: Record, topic_id: str, readers: Sequence[SnapshotReader]) -> Iterator[tuple[str, str]]:
    """The fields of which the snapshot has the same value at that time already, with the ids of these revisions."""
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
    """The revisions of some fields of a topic of this scope, newest first; None where there is no such topic."""
    try:
        found = resolve(readers, topic_id, [scope])
    except TopicNotFound:
        return None
    where = "r.topic_id = $id AND r.part = 'field' AND r.name IN $names AND r.summarises IS NULL"
    columns = ["id", "name", "rank", "value_json", "valid_from"]
    return found.reader.graph.read(REVISION, columns, where, id=found.topic["id"][0], names=names).sort("rank")
