"""Exceptions of the client: a request to a memstate server failed."""

from __future__ import annotations

from typing import Any

from memstate_core.model.errors.base import MemstateError


class ApiError(MemstateError):
    """A request to a memstate server failed.

    The message is the server's; further members of the problem document are in `facts`.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        kind: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        **facts: Any,
    ) -> None:
        named = {"status": status, "kind": kind, "request_id": request_id, "retry_after": retry_after}
        super().__init__(message, **named, **facts)

    @property
    def status(self) -> int | None:
        """The HTTP status; None if there was no response."""
        status: int | None = self.facts["status"]
        return status

    @property
    def kind(self) -> str | None:
        """The last segment of the problem document's type; None if there was none."""
        kind: str | None = self.facts["kind"]
        return kind

    @property
    def request_id(self) -> str | None:
        """The id of the request in the server's log, if the response has it."""
        request_id: str | None = self.facts["request_id"]
        return request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds until the request may be repeated, if the server states it."""
        retry_after: float | None = self.facts["retry_after"]
        return retry_after


class RequestInvalid(ApiError):
    """The request is invalid."""


class AccessDenied(ApiError):
    """No key, a wrong one, or one without permission."""


class NotFound(ApiError):
    """There is nothing with this id or address."""


class RateLimited(ApiError):
    """Too many requests; `retry_after` says when to repeat."""


class ServerFailed(ApiError):
    """The server failed, temporarily or not."""


class ServerUnreachable(ApiError):
    """There was no response: the connection was refused, lost, or timed out."""
