"""Validates the topics of an answer by the rules of an import.

A topic is converted to an observation and validated like a row of a dump. Only turns of the prompt count, and each
becomes evidence of one topic only. What is invalid is refused with the reason; nothing is corrected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.ingest.validation.batch import ValidatedBatch, validate_batch
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import RECORD, Rules
from memstate_core.ingest.validation.values import FieldRow
from memstate_core.llm.schema import AnswerTopic

PROVENANCE = "llm"
_NO_TIMES = Clock(datetime.max.replace(tzinfo=UTC), "nothing")
_AT = {name: at for at, name in enumerate(RECORD)}


@dataclass(frozen=True)
class Found:
    """A valid topic.

    Attributes:
        title: its title.
        summary: its summary, if it has one.
        topic_kind: its kind, if it has one.
        turns: positions in the session of the turns that are its evidence (at least one).
        fields: the values that it asserts.
        edges: kind, and the name of the other topic.
        extends: the handle or title of the known topic that it extends, by the model's choice.
        why: the reason for that.
    """

    title: str
    summary: str | None
    topic_kind: str | None
    turns: tuple[int, ...]
    fields: tuple[FieldRow, ...]
    edges: tuple[tuple[str, str], ...]
    extends: str | None
    why: str | None


class Validator:
    """Validates the answers about one session; each turn becomes evidence of one topic only."""

    def __init__(self, scope: str, longest: int) -> None:
        """Makes a validator.

        Args:
            scope: the scope of the session.
            longest: the most bytes of a topic.
        """
        self._rules, self._longest = Rules(scope, _NO_TIMES), longest
        self._taken: set[int] = set()
        self._row = 0
        self.refusals: list[Refusal] = []

    def found(self, objects: Sequence[Any], part: range) -> list[Found]:
        """The valid topics among the objects of an answer; the others are added to `refusals`.

        Args:
            objects: the decoded objects of an answer.
            part: positions in the session of the turns of the prompt, which numbers them from 1.
        """
        topics = []
        for one in objects:
            self._row += 1
            raw = json.dumps(one).encode()
            row = RawRow(self._row, raw, len(raw))
            try:
                answer = msgspec.convert(one, AnswerTopic)
            except msgspec.ValidationError as error:
                self._refuse(row, Reason.WRONG_TYPE, str(error))
            else:
                topics += self._held(answer, row, part)
        return topics

    def malformed(self, text: str) -> None:
        """Refuses an answer without any object."""
        self._row += 1
        raw = text.encode()
        self._refuse(RawRow(self._row, raw, len(raw)), Reason.BROKEN_JSON, "the answer is not one object of that shape")

    def _held(self, answer: AnswerTopic, row: RawRow, part: range) -> list[Found]:
        batch = self._validated(answer, row.line)
        if batch.refusals:
            _, reason, detail = batch.refusals[0]
            self._refuse(row, reason, detail)
            return []
        named = {part[number - 1] for number in answer.turns if 1 <= number <= len(part)}
        turns = tuple(sorted(named - self._taken))
        if not turns:
            found = "only turns of topics before it" if named else "none of the turns that were shown"
            self._refuse(row, Reason.BAD_VALUE, f"$.turns names {found}, expected some of 1 to {len(part)}")
            return []
        self._taken.update(turns)
        return [_found(batch, answer, turns)]

    def _validated(self, answer: AnswerTopic, line: int) -> ValidatedBatch:
        observation = {
            "kind": "explicit_memory",
            "provenance": PROVENANCE,
            "title": answer.title,
            "summary": answer.summary,
            "topic_kind": answer.topic_kind,
            "fields": [msgspec.to_builtins(one) for one in answer.fields],
            "edges": [{"kind": one.kind, "to_topic_key": one.to} for one in answer.edges],
        }
        raw = json.dumps(observation).encode()
        too_long = len(raw) > self._longest
        digest = "" if too_long else None
        return validate_batch([RawRow(line, raw, len(raw), sha256=digest)], self._rules, self._longest)

    def _refuse(self, row: RawRow, reason: Reason, detail: str) -> None:
        self.refusals.append(Refusal(row, reason, shortened(detail)))


def _found(batch: ValidatedBatch, answer: AnswerTopic, turns: tuple[int, ...]) -> Found:
    record = batch.records[0]
    return Found(
        title=" ".join(record[_AT["title"]].split()),
        summary=record[_AT["summary"]] or None,
        topic_kind=record[_AT["topic_kind"]],
        turns=turns,
        fields=record[_AT["fields"]],
        edges=tuple((kind, key) for kind, _, key, _, _ in record[_AT["edges"]]),
        extends=answer.extends,
        why=answer.why,
    )
