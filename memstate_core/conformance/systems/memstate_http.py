"""memstate behind its HTTP API: what a client can see, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from memstate_core.client import MemoryClient
from memstate_core.conformance.system import FIELD_TYPES, Found, Refused, Statement, Version
from memstate_core.model.answers import TopicRecord
from memstate_core.model.errors import NotFound, RequestInvalid, ServerFailed

_ACTIVE = "active"
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 120.0


class MemstateOverHttp:
    """A memstate server, and a way to run its nights.

    Args:
        client: a client of the server, whose store has `max_active_topics` at the bound of the scenario.
        night: runs a night at a logical time, and returns when its snapshot is published.
    """

    name = "memstate"

    def __init__(self, client: MemoryClient, night: Callable[[datetime], None]) -> None:
        self._client, self._night = client, night
        self._ids: dict[tuple[str, str], str] = {}
        self._subjects: dict[str, str] = {}
        self._observations: dict[str, str] = {}

    def ingest(self, batch: Sequence[Statement]) -> None:
        """POST /v1/ingest, all or none."""
        try:
            answer = self._client.ingest([_observation(said) for said in batch])
        except RequestInvalid as refused:
            raise Refused(str(refused)) from None
        for said, topic_id in zip(batch, answer.topic_ids, strict=True):
            if topic_id is not None:
                self._ids[said.scope, said.subject] = topic_id
                self._subjects[topic_id] = said.subject

    def advance(self, now: datetime) -> None:
        """Runs a night, and waits until the server has its snapshot."""
        before = self._served()
        self._night(now)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._served() == before:
            if time.monotonic() > deadline:
                raise TimeoutError(f"after the night of {now:%Y-%m-%d} the server still serves {before}")
            time.sleep(_POLL_SECONDS)

    def ask(self, scope: str, question: str) -> Sequence[Found]:
        """POST /v1/query, not recorded as an access."""
        found = self._client.query(question, scope=scope, evidence_k=0, record=False).candidates
        return [
            Found(self._subject(each.topic_id), {field.name: [field.current.value] for field in each.fields})
            for each in found
        ]

    def lookup(self, scope: str, subject: str) -> Found | None:
        """GET /v1/topics/{id}."""
        record = self._record(scope, subject)
        if record is None:
            return None
        newest = {name: [field.history[0].value] for name, field in record.fields.items() if field.history}
        return Found(subject, newest)

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version]:
        """GET /v1/topics/{id}/history, with the observations of its evidence as GET /v1/facts has named them."""
        topic_id = self._ids.get((scope, subject))
        if topic_id is None:
            return []
        field = self._client.history(topic_id, expand=True).fields.get(name)
        revisions = field.history if field is not None else []
        facts = self._client.facts(topic_id, name, scope=scope, history=True)
        cited = {(fact.valid_from, _key(fact.object)): fact.source_event_ids for fact in facts}
        for one in revisions:
            named = cited.get((one.valid_from, _key(one.value)), [])
            self._observations |= dict(zip(one.evidence_ids, named, strict=False))
        return [
            Version(
                one.value,
                _moment(one.valid_from),
                tuple(self._observations[each] for each in one.evidence_ids if each in self._observations),
            )
            for one in revisions
        ]

    def review(self, scope: str) -> Collection[str]:
        """The topics that are stale."""
        mine = [subject for where, subject in self._ids if where == scope]
        records = ((subject, self._record(scope, subject)) for subject in mine)
        return {subject for subject, record in records if record is not None and record.stale is not None}

    def feedback(self, scope: str, subject: str, at: datetime) -> None:
        """POST /v1/feedback."""
        self._client.feedback(self._ids[scope, subject], used=True, at=at)

    def active(self, scope: str) -> Collection[str]:
        """GET /v1/topics."""
        return {self._subject(each.topic_id) for each in self._client.topics(scope) if each.state == _ACTIVE}

    def strength(self, scope: str, subject: str) -> float | None:
        """The topic's salience."""
        record = self._record(scope, subject)
        return None if record is None else record.salience

    def _record(self, scope: str, subject: str) -> TopicRecord | None:
        topic_id = self._ids.get((scope, subject))
        try:
            return None if topic_id is None else self._client.topic(topic_id)
        except NotFound:
            return None

    def _subject(self, topic_id: str) -> str:
        return self._subjects.get(topic_id, topic_id)

    def _served(self) -> str | None:
        """The served snapshot; None before the first night."""
        try:
            return self._client.ready().snapshot
        except ServerFailed:
            return None


def _observation(said: Statement) -> dict[str, Any]:
    kind, _, name = said.scope.partition(":")
    since = None if said.valid_from is None else said.valid_from.isoformat()
    fields = [
        {"name": each, "value": value, "field_type": FIELD_TYPES[each], "valid_from": since}
        for each, value in said.values.items()
    ]
    edges = [{"kind": "derives", "to_topic_key": each} for each in said.depends_on]
    edges += [{"kind": "mentions", "to_topic_key": each} for each in said.mentions]
    return {
        "observation_id": said.id,
        "scope": {"type": kind, "id": name},
        "observed_at": said.observed_at.isoformat(),
        "topic_key": said.subject,
        "title": said.title,
        "fields": fields,
        "edges": edges,
    }


def _moment(text: str | None) -> datetime:
    return datetime.fromisoformat((text or "1970-01-01T00:00:00+00:00").replace("Z", "+00:00")).astimezone(UTC)


def _key(value: object) -> str:
    return f"{type(value).__name__}:{value}"
