"""Real servers on this machine that take notifications: HTTP with answers given by the test, and SMTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Hook:
    """An HTTP server.

    Attributes:
        port: where it listens.
        answers: the statuses of the next answers; afterwards 200. Redirects lead to `/elsewhere`; 0 is no answer.
        paths: the path of each request.
        headers: the headers of each request.
        bodies: the body of each request.
    """

    port: int = 0
    answers: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/s3cret-path?token=s3cret-token"

    @property
    def documents(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]

    @property
    def events(self) -> list[str]:
        return [document["event"] for document in self.documents]


@contextmanager
def webhook() -> Iterator[Hook]:
    """A server for the length of the block."""
    hook, ended = Hook(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.paths.append(self.path)
            hook.headers.append(dict(self.headers))
            hook.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status = hook.answers.pop(0) if hook.answers else 200
            if status == 0:
                ended.wait(20)
                return
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hook
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Post:
    """An SMTP server: its port, what it took, and the answers that it gives first instead of taking a message."""

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    receivers: list[list[str]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        del server, session
        if self.answers:
            return self.answers.pop(0)
        self.messages.append(message_from_bytes(envelope.content, policy=policy.default))
        self.receivers.append(list(envelope.rcpt_tos))
        return "250 OK"


@contextmanager
def mail_server(**options: Any) -> Iterator[Post]:
    """A server for the length of the block; options are those of `aiosmtpd`."""
    post = Post()
    controller = _OnAnyPort(post, hostname="127.0.0.1", port=0, **options)
    controller.start()
    try:
        post.port = controller.server.sockets[0].getsockname()[1]
        yield post
    finally:
        controller.stop()


class _OnAnyPort(Controller):
    """A controller that listens on a free port; the original connects to the port that it was given, to try it."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
