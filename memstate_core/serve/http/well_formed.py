"""What holds for every route: parameters are known, a body is declared as JSON, and HEAD is answered as GET.

A misspelt parameter that is ignored is a filter that is not applied, as with the keys of bodies.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.policy.vocabularies import meant
from memstate_core.serve.problems import Problem

_SHOWN = 100


async def well_formed(request: Request) -> None:
    """Refuses what no route takes; a dependency of all routes.

    Raises:
        Problem: the body is not declared as JSON, which a page of another origin cannot do without a preflight.
        RequestValidationError: a GET has a parameter that its route does not know, or takes once and has more often.
    """
    if request.method == "GET":
        _require_known(request)
    else:
        require_json(request)


def require_json(request: Request) -> None:
    """Refuses a body that is not declared as JSON.

    Raises:
        Problem: it is not.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        found = f"content type {kind[:_SHOWN]!r}" if kind else "no content type"
        detail = f"found {found}, expected the header Content-Type: application/json"
        raise Problem(415, "unsupported-media-type", detail)


def _require_known(request: Request) -> None:
    route: APIRoute = request.scope["route"]
    known = {each.alias: each.field_info.annotation for each in route.dependant.query_params}
    given = Counter(name for name, _ in request.query_params.multi_items())
    unknown = [_unknown(name[:_SHOWN], list(known)) for name in given if name not in known]
    repeated = [_repeated(name, times) for name, times in given.items() if times > 1 and not _is_list(known.get(name))]
    if unknown or repeated:
        raise RequestValidationError(unknown or repeated)


def _unknown(name: str, known: list[str]) -> dict[str, Any]:
    expected = f"expected one of {', '.join(known)}" if known else "this path takes none"
    return {"type": "unknown", "loc": ("query", name), "msg": f"unknown parameter{meant(name, known)} {expected}"}


def _is_list(annotation: object) -> bool:
    return list in {get_origin(each) for each in (annotation, *get_args(annotation))}


def _repeated(name: str, times: int) -> dict[str, Any]:
    return {"type": "repeated", "loc": ("query", name), "msg": f"found {times} times, expected once"}


class HeadAsGet:
    """ASGI middleware that answers HEAD as GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on a HEAD request as GET; the server sees HEAD again from the first part of the answer on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            scope["method"] = "HEAD"
            if message["type"] == "http.response.body":
                message["body"] = b""
            await send(message)

        scope["method"] = "GET"
        try:
            await self._app(scope, receive, sending)
        finally:
            scope["method"] = "HEAD"
