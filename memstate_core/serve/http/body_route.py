"""Routes whose only parameter is a JSON body, such as questions, answered without the framework's dependencies.

Resolving those takes a tenth of the time of an answer. What is not well-formed goes the usual way, which says what is
wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from memstate_core.serve.http.well_formed import require_json


class BodyRoute(APIRoute):
    """A route of a function `(here, who, body)`: the service, the caller, and a body of one model."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of requests."""
        usual = super().get_route_handler()
        model: TypeAdapter[Any] = TypeAdapter(get_type_hints(self.endpoint)["body"])

        async def handle(request: Request) -> Response:
            require_json(request)
            try:
                body = model.validate_python(json.loads(await request.body()))
            except ValueError:
                return await usual(request)
            here, who = request.app.state.service, request.state.principal
            found: Response = await run_in_threadpool(self.endpoint, here=here, who=who, body=body)
            return found

        return handle
