"""A server that fails by script, for what a sound one cannot be asked to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

HEALTHY = {"status": "ok"}


class Stage(ThreadingHTTPServer):
    """Answers each request by the next line of a script: a status with headers and a body, or a broken connection.

    Attributes:
        script: what is left of it; what comes after it is answered with 200.
        requests: method, path, headers and body of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Actor)
        self.script: list[tuple[int, dict[str, str], Any]] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Actor(BaseHTTPRequestHandler):
    server: Stage

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        status, headers, document = self.server.script.pop(0) if self.server.script else (200, {}, HEALTHY)
        if status == 0:
            self.close_connection = True
            return
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response_only(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        thread = threading.Thread(target=stage.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield stage
        stage.shutdown()
        thread.join()
