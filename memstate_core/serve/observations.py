"""Validates the observations of a request by the rules of an import; all are accepted or none.

Ids are derived from content, so they are known before any run has seen the observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


@dataclass(frozen=True)
class Accepted:
    """Accepted observations.

    Attributes:
        lines: the observations as lines of a dump.
        observation_ids: their ids, in request order.
        topic_ids: the topic of each if its id, key or placement determines it; None if only a run can decide it.
        given: for each observation that names its topic by id: its position from 0, its scope, the id.
        records: the parsed observations (columns RECORD).
    """

    lines: bytes
    observation_ids: list[str]
    topic_ids: list[str | None]
    given: list[tuple[int, str, str]]
    records: list[Record]

    @property
    def contents(self) -> list[tuple[str, str, str]]:
        """The scope, the id and the digest of the content of each observation."""
        names = ("scope", "observation_id", "content_sha256")
        return [tuple(record[_COLUMN[name]] for name in names) for record in self.records]

    @property
    def scopes(self) -> set[str]:
        """The scopes of the observations."""
        return {record[_COLUMN["scope"]] for record in self.records}

    @property
    def made(self) -> set[tuple[str, str]]:
        """The topics, as scope and id, that observations make in their own scope by a key or by their placement."""
        named = {place for place, _, _ in self.given}
        return {
            (record[_COLUMN["scope"]], topic_id)
            for place, (record, topic_id) in enumerate(zip(self.records, self.topic_ids, strict=True))
            if topic_id is not None and place not in named
        }


class ObservationsRefused(Exception):
    """A request in which at least one observation is refused.

    Attributes:
        refusals: for each refused one its position from 0, the reason code, and one sentence.
    """

    def __init__(self, refusals: list[tuple[int, str, str]]) -> None:
        super().__init__(f"{len(refusals)} refused")
        self.refusals = refusals


class ObservationsConflict(ObservationsRefused):
    """A request in which the ids of some observations were accepted with other contents before."""


def observations_in(body: bytes) -> list[bytes]:
    """The observations of a body, each as one line: the elements of an array, or the body itself.

    Raises:
        msgspec.DecodeError: the body is a malformed array.
    """
    items = msgspec.json.decode(body, type=list[msgspec.Raw]) if body.lstrip().startswith(b"[") else [body]
    # A raw line feed can only be whitespace between JSON tokens.
    return [bytes(item).replace(b"\n", b" ").strip() for item in items]


def accept(rows: list[bytes], settings: Settings, now: datetime, who: Principal = OWNER) -> Accepted:
    """Validates observations.

    Args:
        rows: one JSON object each, without line feeds.
        settings: the home's settings; the section `ingest` applies.
        now: the current time.
        who: the caller.

    Raises:
        NotAllowed: one belongs to a scope that the caller may not write to.
        ObservationsRefused: at least one is invalid.
    """
    longest = settings.ingest.max_line_mib << 20
    found = list(line_rows([b"\n".join(rows)], longest))
    batch = validate_batch(found, Rules(GLOBAL_SCOPE, Clock.at(now, settings)), longest)
    _check_scopes(batch, who)
    refusals = [*batch.refusals, *_conflicts(batch)]
    if refusals:
        raise ObservationsRefused([(each.row.line - 1, each.reason.value, each.detail) for each in refusals])
    return Accepted(
        b"".join(row + b"\n" for row in rows),
        [record[_COLUMN["observation_id"]] for record in batch.records],
        [_topic_id(record) for record in batch.records],
        [
            (place, record[_COLUMN["scope"]], topic_id)
            for place, record in enumerate(batch.records)
            if (topic_id := record[_COLUMN["topic_id"]]) is not None
        ],
        batch.records,
    )


def _check_scopes(batch: ValidatedBatch, who: Principal) -> None:
    for row, record in zip(batch.origins, batch.records, strict=True):
        scope = record[_COLUMN["scope"]]
        if not who.sees(scope):
            found = f"observation {row.line - 1} of scope {scope}"
            raise NotAllowed(found, "observations of the scopes that this key grants; none was accepted")


def _conflicts(batch: ValidatedBatch) -> list[Refusal]:
    """Observations whose id has other content earlier in the same request."""
    first: dict[tuple[str, str], str] = {}
    conflicts = []
    for place, (scope, observation_id, content, *_) in enumerate(batch.records):
        if first.setdefault((scope, observation_id), content) != content:
            conflicts.append(batch.conflict(place))
    return conflicts


def _topic_id(record: Record) -> str | None:
    """The topic that an observation determines by itself (`memstate_core.placement.named`, rules 1 to 3)."""
    scope, observation_id = record[_COLUMN["scope"]], record[_COLUMN["observation_id"]]
    if (given := record[_COLUMN["topic_id"]]) is not None:
        return str(given)
    if (key := record[_COLUMN["topic_key"]]) is not None:
        return uuid_text("key", scope, key)
    if record[_COLUMN["placement"]] == "new_topic" and record[_COLUMN["title"]] is not None:
        return uuid_text("observation", scope, observation_id)
    return None
