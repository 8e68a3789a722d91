"""Problem documents (RFC 9457): what happened and what the caller can do.

Every exception of memstate has a status here; any other becomes a 500 that reveals no internals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from memstate_core.model import errors
from memstate_core.model.errors import MemstateError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:memstate:problem:"
STATUS: dict[type[MemstateError], int] = {
    errors.SettingsError: 500,
    errors.UnreadableDump: 422,
    errors.HomeUnknown: 500,
    errors.HomeUnsupported: 500,
    errors.StoreLocked: 503,
    errors.StoreNotFound: 503,
    errors.TopicNotFound: 404,
    errors.TopicAmbiguous: 409,
    errors.NothingToUndo: 404,
    errors.MergeUndone: 409,
    errors.MergesUnknown: 404,
    errors.VerdictRefused: 409,
    errors.NotStale: 409,
    errors.SnapshotDamaged: 503,
    errors.SnapshotAbsent: 503,
    errors.SnapshotRemoved: 503,
    errors.FrameMismatch: 500,
    errors.LedgerDamaged: 503,
    errors.ChainNotBegun: 500,
    errors.CompactionRefused: 500,
    errors.DiskFull: 507,
    errors.HistoryUnreadable: 500,
    errors.HistoryUnreachable: 503,
    errors.StagingMissing: 500,
    errors.StagingOfAnotherRun: 500,
    errors.ModelUnavailable: 503,
    errors.DimensionMismatch: 503,
    errors.EncoderEndpointFailed: 503,
    errors.RebuildMismatch: 500,
    errors.PlanInvalid: 422,
    errors.PlanStale: 409,
    errors.StepFailed: 500,
    errors.ShardsFailed: 500,
    errors.EvidenceSetAside: 500,
    errors.ExtractorUnavailable: 503,
    errors.NotAllowed: 403,
    errors.KeysDamaged: 500,
    errors.KeyRefused: 409,
    errors.CheckRefused: 409,
    errors.GateRefused: 409,
    errors.AcceptanceInvalid: 422,
    errors.RunUnknown: 404,
    errors.RollbackRefused: 409,
    errors.ReshardRefused: 409,
    errors.ReshardMismatch: 500,
    errors.ShardRetired: 409,
    errors.BackupDamaged: 500,
    errors.BackupNotFound: 404,
    errors.BackupRefused: 409,
    errors.BackupUnreachable: 503,
    errors.CloudUnavailable: 503,
    errors.PublicationRefused: 409,
    errors.PublicationUnreachable: 503,
    errors.PublicationConflict: 409,
    errors.SourceUnreachable: 503,
    errors.InboxUnreachable: 503,
    errors.NotOnReplica: 421,
    errors.StoreUrlRefused: 409,
    errors.ConditionalPutsIgnored: 409,
    errors.StoreUnreachable: 503,
    errors.LeaseLost: 409,
    errors.RemoteStoreDamaged: 500,
    errors.RestoreRefused: 409,
    errors.EraseRefused: 409,
    errors.RunHistoryShared: 409,
    errors.ErasureNotRepeated: 409,
    errors.SubjectAmbiguous: 409,
    errors.SubjectNotFound: 404,
    # Raised by the client when it talks to another server; a server itself raises none of these.
    errors.ApiError: 502,
    errors.RequestInvalid: 502,
    errors.AccessDenied: 502,
    errors.NotFound: 502,
    errors.RateLimited: 502,
    errors.ServerFailed: 502,
    errors.ServerUnreachable: 502,
}
_OWN = frozenset({"status", "kind", "detail", "headers"})
"""Facts about another server's answer that are not members of this server's problem document."""

_RETRY = {"Retry-After": "1"}


class Problem(Exception):
    """An error of the HTTP layer.

    Attributes:
        status: the status code.
        kind: the last part of the document's `type`, for scripts to match on.
        detail: one sentence with what was found and what was expected.
        facts: further members of the document.
        headers: further headers of the response.
    """

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers, self.facts = dict(headers or {}), facts


def problem_of(error: MemstateError) -> Problem:
    """Converts an exception of memstate; its facts become members of the document."""
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    facts = {name: value for name, value in error.facts.items() if value is not None and name not in _OWN}
    kind = re.sub(r"(?<=.)(?=[A-Z])", "-", type(error).__name__).lower()
    return Problem(status, kind, error.message, _RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else None, **facts)


def problem_of_status(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A problem for a status set by the web framework, such as 404 or 405."""
    return Problem(status, HTTPStatus(status).phrase.lower().replace(" ", "-"), detail, headers)


def response(problem: Problem, request_id: str | None = None) -> Response:
    """The problem document as an HTTP response."""
    document = problem.facts | {
        "type": TYPE_PREFIX + problem.kind,
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    if request_id is not None:
        document["request_id"] = request_id
    content = msgspec.json.encode(document, enc_hook=str)
    return Response(content, problem.status, problem.headers, MEDIA_TYPE)
