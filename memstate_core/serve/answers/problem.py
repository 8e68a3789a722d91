"""What comes instead of an answer."""

from __future__ import annotations

from pydantic import BaseModel


class ProblemDocument(BaseModel):
    """An error (RFC 9457); its type tells kinds apart."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
