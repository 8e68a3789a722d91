"""How long a request may take: after that its caller is told so, whatever goes on behind."""

from __future__ import annotations

import asyncio

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core.serve.http.middleware import Guard
from memstate_core.serve.options import Options
from memstate_core.serve.problems import Problem


class Deadline(Guard):
    """Answers in place of what takes too long to begin an answer; an answer that has begun may go on.

    Work in a thread cannot be stopped: it ends by itself and is heard by nobody. Work that still waits for a thread
    is not begun.
    """

    def __init__(self, app: ASGIApp, options: Options) -> None:
        super().__init__(app, options)
        self._late: set[asyncio.Task[None]] = set()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the application within for so long."""
        begun = abandoned = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if not abandoned:
                begun = True
                await send(message)

        # A scope of anyio, since a plain cancel would count a thread as free that still works.
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
            f"no answer within {self.options.request_seconds:g} s; ask again later. What was sent may have been taken: "
            "observations that are sent again count once"
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
