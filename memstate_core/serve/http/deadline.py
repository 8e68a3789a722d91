"""Request timeout: a 503 is sent if the answer has not begun in time."""

from __future__ import annotations

import asyncio

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.serve.http.middleware import Guard
from memstate_core.serve.options import Options
from memstate_core.serve.problems import Problem


class Deadline(Guard):
    """Answers 503 if the application has not begun its response in time; a response that has begun may finish.

    Work in a thread cannot be stopped: it runs to its end and its result is discarded. Work still queued for a thread
    never starts.
    """

    def __init__(self, app: ASGIApp, options: Options) -> None:
        super().__init__(app, options)
        self._late: set[asyncio.Task[None]] = set()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the application within the time limit."""
        begun = abandoned = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if not abandoned:
                begun = True
                await send(message)

        # An anyio scope, since a plain cancel would count a thread as free while it still works.
        work = anyio.CancelScope()
        task = asyncio.ensure_future(self._run(work, scope, receive, sending))
        try:
            await asyncio.wait({task}, timeout=self.options.request_seconds)
            if task.done() or begun:
                await task
                return
        except asyncio.CancelledError:
            work.cancel()
            raise
        abandoned = True
        self._let_go(task)
        work.cancel()
        detail = (
            f"no answer within {self.options.request_seconds:g} s; try again later. A write may have been accepted: "
            "observations sent again count once"
        )
        raise Problem(503, "timeout", detail, {"Retry-After": "1"})

    async def _run(self, work: anyio.CancelScope, scope: Scope, receive: Receive, send: Send) -> None:
        with work:
            await self.app(scope, receive, send)

    def _let_go(self, task: asyncio.Task[None]) -> None:
        self._late.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()
