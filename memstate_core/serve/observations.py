"""Observations as a request holds them: read by the very rules of an import, all taken or none.

Ids follow from content, so they can be told before any run has seen the observation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from memstate_core.ingest.raw_rows import line_rows
from memstate_core.ingest.validation.batch import ValidatedBatch, validate_batch
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import RECORD, Record, Rules
from memstate_core.model.errors import NotAllowed
from memstate_core.model.ids import uuid_text
from memstate_core.model.scope import GLOBAL_SCOPE
from memstate_core.policy.settings import Settings
from memstate_core.serve.auth.principal import OWNER, Principal

_COLUMN = {name: place for place, name in enumerate(RECORD)}
_TELLING = ("text", "topic_id", "topic_key", "fields", "edges")
_MARK = b'{"fields":[],'


@dataclass(frozen=True)
class Accepted:
    """Observations that can be accepted.

    Attributes:
        lines: as lines of a dump.
        observation_ids: the id of each, in the order in which they came.
        topic_ids: the topic of each where its id, its key or its placement says it; None where only a run can tell.
        given: for each that names its topic by an id: its place from 0, its scope, the id.
        records: each as it was read (columns RECORD).
    """

    lines: bytes
    observation_ids: list[str]
    topic_ids: list[str | None]
    given: list[tuple[int, str, str]]
    records: list[Record]


class ObservationsRefused(Exception):
    """Observations of which at least one is refused.

    Attributes:
        refusals: for each refused one its place from 0, the code of the reason, and one sentence.
    """

    def __init__(self, refusals: list[tuple[int, str, str]]) -> None:
        super().__init__(f"{len(refusals)} refused")
        self.refusals = refusals


def clock_at(now: datetime, settings: Settings) -> Clock:
    """What counts as the future, as in an import at this moment."""
    days = settings.ingest.max_future_days
    return Clock(now + timedelta(days=days), f"a larger ingest.max_future_days (it is {days:g})")


def observations_in(body: bytes) -> list[bytes]:
    """The observations of a body, each as one line: those of an array, or the one that the body is.

    Raises:
        msgspec.DecodeError: the body is an array that is not well-formed.
    """
    items = msgspec.json.decode(body, type=list[msgspec.Raw]) if body.lstrip().startswith(b"[") else [body]
    return [bytes(item).replace(b"\n", b" ").strip() for item in items]  # JSON has line feeds between words only


def accept(rows: list[bytes], settings: Settings, now: datetime, who: Principal = OWNER) -> Accepted:
    """Checks observations.

    Args:
        rows: one JSON object each, without line feeds.
        settings: the home's settings, of which the section `ingest` matters here.
        now: the machine's clock.
        who: sends them.

    Raises:
        NotAllowed: one is of a scope that the caller does not see.
        ObservationsRefused: names each that is refused, and why.
    """
    longest = settings.ingest.max_line_mib << 20
    found = list(line_rows([b"\n".join(rows)], longest))
    sifted = validate_batch(found, Rules(GLOBAL_SCOPE, clock_at(now, settings)), longest)
    _check_scopes(sifted, who)
    refusals = [*sifted.refusals, *_conflicts(sifted)]
    if refusals:
        raise ObservationsRefused([(each.row.line - 1, each.reason.value, each.detail) for each in refusals])
    lines = [_marked(row, record) for row, record in zip(rows, sifted.records, strict=True)]
    return Accepted(
        b"".join(line + b"\n" for line in lines),
        [record[_COLUMN["observation_id"]] for record in sifted.records],
        [_topic_id(record) for record in sifted.records],
        [
            (place, record[_COLUMN["scope"]], topic_id)
            for place, record in enumerate(sifted.records)
            if (topic_id := record[_COLUMN["topic_id"]]) is not None
        ],
        sifted.records,
    )


def _check_scopes(sifted: ValidatedBatch, who: Principal) -> None:
    for row, record in zip(sifted.origins, sifted.records, strict=True):
        scope = record[_COLUMN["scope"]]
        if not who.sees(scope):
            found = f"observation {row.line - 1} of scope {scope}"
            raise NotAllowed(found, "observations of the scopes that this key is for; none was taken")


def _conflicts(sifted: ValidatedBatch) -> list[Refusal]:
    """Observations whose id stands for other content earlier in the same request."""
    first: dict[tuple[str, str], str] = {}
    conflicts = []
    for place, (scope, observation_id, content, *_) in enumerate(sifted.records):
        if first.setdefault((scope, observation_id), content) != content:
            conflicts.append(sifted.conflict(place))
    return conflicts


def _marked(row: bytes, record: Record) -> bytes:
    """A line whose first keys tell that it is an observation, not a chat export with a title.

    An empty list says nothing, so the observation's identity stays what it was.
    """
    if any(record[_COLUMN[name]] for name in _TELLING) or "observation_id" in json.loads(row):
        return row
    return _MARK + row.lstrip()[1:].lstrip()


def _topic_id(record: Record) -> str | None:
    """The topic that an observation names by itself (`memstate_core.placement.named`, rules 1 to 3)."""
    scope, observation_id = record[_COLUMN["scope"]], record[_COLUMN["observation_id"]]
    if (given := record[_COLUMN["topic_id"]]) is not None:
        return str(given)
    if (key := record[_COLUMN["topic_key"]]) is not None:
        return uuid_text("key", scope, key)
    if record[_COLUMN["placement"]] == "new_topic" and record[_COLUMN["title"]] is not None:
        return uuid_text("observation", scope, observation_id)
    return None
