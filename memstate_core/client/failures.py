"""Maps error responses and transport errors to memstate's exceptions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

from memstate_core.model import errors
from memstate_core.model.errors import ApiError
from memstate_core.model.http_date import http_date

_SERVER_SIDE = 500
_KIND_OF: dict[int, type[ApiError]] = {
    401: errors.AccessDenied,
    403: errors.AccessDenied,
    404: errors.NotFound,
    429: errors.RateLimited,
}
_KNOWN = frozenset({"type", "title", "status", "detail", "request_id", "kind", "retry_after", "message"})


def failure_of(response: httpx2.Response) -> ApiError:
    """The exception for an error response, with the details of its problem document (RFC 9457) if it has one."""
    document = _document(response)
    detail = document.get("detail")
    status = response.status_code
    request_id = document.get("request_id") or response.headers.get("X-Request-Id")
    return _kind(status)(
        detail if isinstance(detail, str) else f"the server answered with status {status} and no problem document",
        status=status,
        kind=_kind_name(document.get("type")),
        request_id=request_id if isinstance(request_id, str) else None,
        retry_after=_retry_after(response.headers),
        **{name: value for name, value in document.items() if name not in _KNOWN},
    )


def unreachable(error: Exception, server: str) -> errors.ServerUnreachable:
    """The exception for a request that got no response."""
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


def _kind_name(kind: object) -> str | None:
    return kind.rpartition(":")[2] or None if isinstance(kind, str) else None


def _retry_after(headers: httpx2.Headers) -> float | None:
    """The pause that Retry-After asks for, in seconds; None if it is absent or malformed (RFC 9110, 10.2.3).

    A date is compared with the response's own Date, since the clocks of client and server may differ.
    """
    wanted = headers.get("Retry-After", "").strip()
    if wanted.isascii() and wanted.isdecimal():
        return float(wanted)
    until, now = http_date(wanted), http_date(headers.get("Date", "")) or datetime.now(UTC)
    return None if until is None else max(0.0, (until - now).total_seconds())
