"""Answers to what is handed over."""

from __future__ import annotations

from memstate_core.client.answers.parts import Answer


class IngestAnswer(Answer, frozen=True):
    """Observations that are safe in the inbox; `topic_ids` has None where only the next run can tell."""

    accepted: int
    observation_ids: list[str]
    topic_ids: list[str | None]
    file: str
    observation_id: str | None = None
    topic_id: str | None = None
    applied: list[str] | None = None
    version_ids: dict[str, str] | None = None
    similar_topic_ids: list[str] | None = None
    ignored: list[str] | None = None


class FeedbackAnswer(Answer, frozen=True):
    """What was noted; the next run counts it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str
