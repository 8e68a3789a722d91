"""How each error that may leave a route or a tool is told: one table, whichever way the caller came in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from memstate_core.ingest.reasons import Rejection
from memstate_core.model.errors import MemstateError, StoreNotFound
from memstate_core.serve.observations import ObservationsRefused
from memstate_core.serve.problems import Problem, problem_of, problem_of_status

_TOLD = {
    404: "nothing is here; /docs lists what can be asked",
    405: "this path does not take this method; the header Allow lists those that it takes",
}


def invalid(error: RequestValidationError | ValidationError) -> Problem:
    """Where the request is wrong and why; never what it said, which may be private."""
    found = [{"at": ".".join(map(str, each["loc"])), "detail": _message(each["msg"])} for each in error.errors()]
    told = "; ".join(f"{each['at']}: {each['detail']}" for each in found[:5])
    return Problem(422, "invalid-request", told or "the request is not valid", errors=found)


def _message(said: Any) -> str:
    return str(said).removeprefix("Value error, ")


def _refused(error: ObservationsRefused) -> Problem:
    found = [{"at": place, "reason": reason, "detail": detail} for place, reason, detail in error.refusals]
    detail = f"{len(found)} refused and none taken; the first at {found[0]['at']}: {found[0]['detail']}"
    return Problem(422, "observations-refused", detail, errors=found)


def _framework(error: HTTPException) -> Problem:
    detail = _TOLD.get(error.status_code, str(error.detail))
    return problem_of_status(error.status_code, detail, error.headers)


def _unpublished(_: StoreNotFound) -> Problem:
    """Where the store lies is nobody's business beyond its machine."""
    detail = "nothing is published here yet; `memstate import PATH` and `memstate maintain` on the server do that"
    return Problem(503, "store-not-found", detail, {"Retry-After": "1"})


PROBLEM_OF: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda problem: problem,
    MemstateError: problem_of,
    StoreNotFound: _unpublished,
    ObservationsRefused: _refused,
    Rejection: lambda error: Problem(422, "invalid-request", error.detail, reason=error.reason.value),
    RequestValidationError: invalid,
    HTTPException: _framework,
    OSError: lambda error: Problem(503, "storage", f"the store cannot be used now: {error.strerror or 'an I/O error'}"),
    Exception: lambda _error: Problem(500, "internal", "an error that nobody foresaw; the server's log says more"),
}
"""How each error that may leave a route is told."""


def told(error: BaseException) -> Problem | None:
    """An error as a problem; None for one that nobody foresaw."""
    kind = next((kind for kind in type(error).__mro__ if kind in PROBLEM_OF), Exception)
    return None if kind is Exception else PROBLEM_OF[kind](error)
