"""Converts the topics of a session to the rows that are recorded (columns SEGMENTS), one per part of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from memstate_core.ingest.validation.values import FieldRow
from memstate_core.llm.integration import card_id
from memstate_core.llm.sandbox import Sandbox, SandboxTopic, normal
from memstate_core.llm.sessions import Session
from memstate_core.llm.validation import PROVENANCE, Found
from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import FIELD_VALUE
from memstate_core.model.step_frames import SEGMENTS

CONVERSATION, NOTE = "conversation", "note"
Names = Mapping[str, str]


@dataclass(frozen=True)
class Placed:
    """The placement of a topic.

    Attributes:
        topic_id: the id of the topic that it continues or becomes.
        new: whether that topic is new.
        reason: the reason, as recorded.
        seen: whether the model had that topic in its prompt when it wrote the summary.
        score: the cosine similarity that decided, if any.
    """

    topic_id: str
    new: bool
    reason: str
    seen: bool
    score: float | None = None

    @classmethod
    def chosen(cls, topic_id: str, reason: str, seen: bool) -> Placed:
        """Continues a topic by the model's choice."""
        return cls(topic_id, False, reason, seen)

    @classmethod
    def alike(cls, topic_id: str, title: str, score: float, probability: float) -> Placed:
        """Continues a topic by similarity."""
        reason = f"continues '{title}': cosine {score:.2f}, probability {probability:.2f}"
        return cls(topic_id, False, reason, False, score)

    @classmethod
    def same(cls, topic_id: str, title: str) -> Placed:
        """Continues the topic of another session with this title and a field of the same name."""
        return cls(topic_id, False, f"same title and field as {title!r} in another session", False)

    @classmethod
    def own(cls, session: Session, topic: SandboxTopic) -> Placed:
        """Becomes a new topic, whose id derives from its first turn."""
        reason = f"{len(topic.turns)} turns of one subject, by the language model"
        return cls(own_id(session, topic), True, reason, True)


def own_id(session: Session, topic: SandboxTopic) -> str:
    """The id that a topic has if it is new."""
    return uuid_text("segment", session.scope, session.turns[topic.first.turns[0]].evidence_id)


def linked(sandbox: Sandbox, placed: list[Placed]) -> tuple[Names, int]:
    """The targets of a session's edges by the name that the model used, and the number of edges without a target."""
    own = {normal(topic.first.title): place.topic_id for topic, place in zip(sandbox.topics, placed, strict=True)}
    names = [name for topic in sandbox.topics for part in topic.parts for _, name in part.edges]
    found = {name: own.get(normal(name)) or card_id(sandbox.cards, name) for name in dict.fromkeys(names)}
    return {name: topic_id for name, topic_id in found.items() if topic_id}, sum(not found[name] for name in names)


def segments(sandbox: Sandbox, placed: list[Placed], names: Names) -> pl.DataFrame:
    """The rows of a session (columns SEGMENTS).

    A topic of several chunks has a row for each, so that what it says of a field in a later one is a later revision.
    """
    rows = [
        _row(sandbox.session, part, place, names, place.new and part is topic.first)
        for topic, place in zip(sandbox.topics, placed, strict=True)
        for part in topic.parts
    ]
    return pl.DataFrame(rows, schema=SEGMENTS, orient="row")


def _row(session: Session, part: Found, place: Placed, names: Names, creates: bool) -> dict[str, Any]:
    turns = [session.turns[at] for at in part.turns]
    kind = part.topic_kind or (NOTE if session.session_id is None else CONVERSATION)
    leads = dict.fromkeys((kind_of, names[name]) for kind_of, name in part.edges if name in names)
    return {
        "topic_id": place.topic_id,
        "scope": session.scope,
        "evidence_ids": [turn.evidence_id for turn in turns],
        "title": part.title if creates else None,
        "summary": part.summary if place.seen else None,
        "topic_kind": kind if creates else None,
        "participants": sorted({turn.actor for turn in turns if turn.actor is not None}),
        "session_id": session.session_id,
        "began_at": min(turn.observed_at for turn in turns),
        "ended_at": max(turn.observed_at for turn in turns),
        "reason": place.reason,
        "score": place.score,
        "provenance": PROVENANCE,
        "fields": [_field(row) for row in part.fields],
        "links": [{"kind": kind_of, "to_topic_id": to} for kind_of, to in leads if to != place.topic_id],
    }


def _field(row: FieldRow) -> dict[str, Any]:
    return dict(zip((field.name for field in FIELD_VALUE.fields), row, strict=True))
