"""An OpenAI-compatible server that answers by a script: for what a real model cannot be made to do, failing in time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """What the server sends: a status, a body, headers; after a while; or nothing, by hanging up."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    after_seconds: float = 0.0
    hang_up: bool = False


Answer = Response | Callable[[Request], Response]


def says(text: Any, *, cut_off: bool = False, tokens: int | None = 10) -> Response:
    """A chat completion; anything but a string is sent as JSON."""
    content = text if isinstance(text, str) else json.dumps(text)
    finish = "length" if cut_off else "stop"
    usage = None if tokens is None else {"prompt_tokens": 1, "completion_tokens": tokens - 1, "total_tokens": tokens}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    return Response(
        body={"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    )


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Response:
    """An error as such servers send it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"error": {"message": message, "type": "x", "code": code, "param": None}}, named)


class Script:
    """The server's script and its record.

    Attributes:
        answers: the answers still to give, in order; the last one is given for ever.
        requests: bodies of the completions that were asked for.
        keys: the authorization header of each.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.keys: list[str | None] = []
        self.url = ""
        self._lock = threading.Lock()

    def prompt(self, number: int = -1) -> str:
        """All that a request said."""
        return "\n".join(message["content"] for message in self.requests[number]["messages"])

    def take(self, request: Request, key: str | None) -> Response:
        """The answer to a request."""
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else answer(request)


@contextmanager
def serving(*answers: Answer) -> Iterator[Script]:
    """A server on a port of its own for the length of the block."""
    script = Script(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            self._send(script.take(json.loads(self.rfile.read(length)), self.headers["authorization"]))

        def do_GET(self) -> None:
            self._send(Response(body={"object": "list", "data": [{"id": "m", "object": "model"}]}))

        def log_message(self, *_: Any) -> None:
            pass

        def _send(self, response: Response) -> None:
            if response.after_seconds:
                time.sleep(response.after_seconds)
            if response.hang_up:
                self.close_connection = True
                return
            text = isinstance(response.body, str)
            body = response.body.encode() if text else json.dumps(response.body).encode()
            try:
                self.send_response(response.status)
                self.send_header("content-type", "text/html" if text else "application/json")
                self.send_header("content-length", str(len(body)))
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except BrokenPipeError:  # the client did not wait
                pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
