"""Answers to writes: ingested observations and feedback."""

from __future__ import annotations

from memstate_core.model.answers.base import Answer, Sometimes


class IngestAnswer(Answer, frozen=True):
    """Observations that are durable in the inbox; an entry of `topic_ids` is null if only the next run can decide it.

    `file` names the file in the inbox; from a replica, the object in the inbox at the URL.
    The keys from `observation_id` on are sent for an observation that came alone: what was accepted of it
    (`applied`; published by the next run), the revision id of each field value (`version_ids`), served topics with a
    similar title and summary, and keys that have no meaning here and are kept with the evidence (`ignored`).
    """

    accepted: int
    observation_ids: list[str]
    topic_ids: list[str | None]
    file: str
    observation_id: Sometimes[str] = None
    topic_id: Sometimes[str] = None
    applied: Sometimes[list[str]] = None
    version_ids: Sometimes[dict[str, str]] = None
    similar_topic_ids: Sometimes[list[str]] = None
    ignored: Sometimes[list[str]] = None


class FeedbackAnswer(Answer, frozen=True):
    """The recorded feedback; the next run applies it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str
