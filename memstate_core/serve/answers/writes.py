"""Answers to what is handed over."""

from __future__ import annotations

from memstate_core.serve.answers.parts import Answer


class IngestAnswer(Answer):
    """Observations that are safe in the inbox; `topic_ids` has null where only the next run can tell.

    The other keys are there for an observation that came alone: what of it was taken (`applied`; published by the next
    run), the ids of its values' revisions by field, served topics like its title and summary, and keys that have no
    meaning here and are kept with the evidence (`ignored`).
    """

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


class FeedbackAnswer(Answer):
    """What was noted; the next run counts it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str
