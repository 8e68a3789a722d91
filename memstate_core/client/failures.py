"""What a server answers instead of an answer, as errors of memstate's tree."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec

from memstate_core.model import errors
from memstate_core.model.errors import ApiError

_SERVER_SIDE = 500
_KIND_OF: dict[int, type[ApiError]] = {
    401: errors.AccessDenied,
    403: errors.AccessDenied,
    404: errors.NotFound,
    429: errors.RateLimited,
}
_KNOWN = frozenset({"type", "title", "status", "detail", "request_id", "kind", "retry_after", "message"})


def failure_of(response: httpx2.Response) -> ApiError:
    """A response that is no success, as an error; a problem document (RFC 9457) speaks for itself."""
    told = _document(response)
    detail = told.get("detail")
    status = response.status_code
    named = told.get("request_id") or response.headers.get("X-Request-Id")
    return _kind(status)(
        detail if isinstance(detail, str) else f"the server answered with status {status} and no problem document",
        status=status,
        kind=_word(told.get("type")),
        request_id=named if isinstance(named, str) else None,
        retry_after=_seconds(response.headers.get("Retry-After")),
        **{name: value for name, value in told.items() if name not in _KNOWN},
    )


def unreachable(error: Exception, server: str) -> errors.ServerUnreachable:
    """The error where no answer came."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return errors.ServerUnreachable(
        f"{server} did not answer ({reason}). Check the base URL, and that `memstate serve` runs there."
    )


def _kind(status: int) -> type[ApiError]:
    default = errors.RequestInvalid if 400 <= status < _SERVER_SIDE else errors.ServerFailed
    return _KIND_OF.get(status, default)


def _document(response: httpx2.Response) -> dict[str, Any]:
    try:
        return msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def _word(kind: object) -> str | None:
    return kind.rpartition(":")[2] or None if isinstance(kind, str) else None


def _seconds(given: str | None) -> float | None:
    """A pause as a server asks for it in seconds; a date is not heeded, clocks differ."""
    return float(given) if given is not None and given.isdecimal() else None
