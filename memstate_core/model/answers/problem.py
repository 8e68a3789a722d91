"""Errors as problem documents."""

from __future__ import annotations

from memstate_core.model.answers.base import Answer, Sometimes


class ProblemDocument(Answer, frozen=True):
    """An error (RFC 9457); `type` identifies the kind. Some kinds have further members."""

    type: str
    title: str
    status: int
    detail: str
    request_id: Sometimes[str] = None
