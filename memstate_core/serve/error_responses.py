"""Maps exceptions to RFC 9457 problem responses: one table for HTTP routes and MCP tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from memstate_core.ingest.reasons import Rejection
from memstate_core.model.errors import InboxUnreachable, MemstateError, StoreNotFound, TopicNotFound
from memstate_core.serve.observations import ObservationsConflict, ObservationsRefused
from memstate_core.serve.problems import Problem, problem_of, problem_of_status

_NO_JSON = "json_invalid"
_DETAILS = {
    404: "no such path; /docs lists the API",
    405: "method not allowed on this path; the header Allow lists the allowed ones",
}


def invalid(error: RequestValidationError | ValidationError) -> Problem:
    """A validation error: where and why, but never the offending value, which may be private."""
    found = [{"at": _place(each), "detail": _message(each)} for each in error.errors()]
    summary = "; ".join(f"{each['at']}: {each['detail']}" for each in found[:5])
    return Problem(422, "invalid-request", summary or "the request is not valid", errors=found)


def _place(error: Any) -> str:
    return "body" if error["type"] == _NO_JSON else ".".join(map(str, error["loc"]))


def _message(error: Any) -> str:
    if error["type"] == _NO_JSON:
        return f"no JSON at character {error['loc'][-1] + 1} ({error['ctx']['error']}), expected one object"
    return str(error["msg"]).removeprefix("Value error, ")


def _refused(error: ObservationsRefused) -> Problem:
    found = [{"at": place, "reason": reason, "detail": detail} for place, reason, detail in error.refusals]
    detail = f"{len(found)} refused, none accepted; the first at {found[0]['at']}: {found[0]['detail']}"
    status = 409 if isinstance(error, ObservationsConflict) else 422
    return Problem(status, "observations-refused", detail, errors=found)


def _framework(error: HTTPException) -> Problem:
    if isinstance(cause := error.__cause__, UnicodeDecodeError):
        detail = f"not UTF-8 at byte {cause.start + 1} ({cause.reason}), expected JSON in UTF-8"
        return Problem(422, "invalid-request", f"body: {detail}", errors=[{"at": "body", "detail": detail}])
    detail = _DETAILS.get(error.status_code, str(error.detail))
    return problem_of_status(error.status_code, detail, error.headers)


def _unknown_topic(error: TopicNotFound) -> Problem:
    problem = problem_of(error)
    advice = " GET /v1/topics, or topics() of the Python client, lists every id." if error.needs_list else ""
    return Problem(problem.status, problem.kind, problem.detail + advice, problem.headers, **problem.facts)


def _unpublished(_: StoreNotFound) -> Problem:
    """Leaves out the path of the store, which callers need not know."""
    detail = (
        "nothing is served yet: a server that has just started opens its snapshot first; where none was published, "
        "run `memstate import PATH` and `memstate maintain` on the server"
    )
    return Problem(503, "store-not-found", detail, {"Retry-After": "1"})


def _unstored(_: InboxUnreachable) -> Problem:
    """Leaves out the address of the storage, and what it said, which callers need not know."""
    detail = "the inbox of the store cannot be written to now; nothing was accepted, send the request again"
    return Problem(503, "inbox-unreachable", detail, {"Retry-After": "5"})


PROBLEM_OF: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda problem: problem,
    MemstateError: problem_of,
    TopicNotFound: _unknown_topic,
    StoreNotFound: _unpublished,
    InboxUnreachable: _unstored,
    ObservationsRefused: _refused,
    Rejection: lambda error: Problem(422, "invalid-request", error.detail, reason=error.reason.value),
    RequestValidationError: invalid,
    HTTPException: _framework,
    OSError: lambda error: Problem(503, "storage", f"the store cannot be used now: {error.strerror or 'an I/O error'}"),
    Exception: lambda _error: Problem(500, "internal", "an unexpected error; see the server's log"),
}
"""The problem response of each exception that a route may raise."""


def problem_for(error: BaseException) -> Problem | None:
    """The problem response of an exception; None for an unexpected one."""
    kind = next((kind for kind in type(error).__mro__ if kind in PROBLEM_OF), Exception)
    return None if kind is Exception else PROBLEM_OF[kind](error)
