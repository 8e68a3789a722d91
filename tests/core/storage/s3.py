"""A real server that speaks the protocol of S3, and a proxy before it that fails on request."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[3]
SECRET = "a-secret-of-the-test"


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Moto's server (`moto_server`); its address."""
    log, command = folder / "log.txt", [sys.executable, "-m", "tests.core.storage.moto_server"]
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
    try:
        while not (found := re.search(r"Running on (\S+)", log.read_text())):
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        server.kill()
        server.wait()


def use_endpoint(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the environment name a server and credentials for it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def empty_bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the server hold one bucket, `bucket`, without objects."""
    use_endpoint(endpoint, monkeypatch)
    for method, path in (("POST", "/moto-api/reset"), ("PUT", "/bucket")):
        urllib.request.urlopen(urllib.request.Request(endpoint + path, data=b"", method=method)).close()


@dataclass
class Faults:
    """What the proxy does to requests whose path matches.

    Attributes:
        matching: which paths; all by default.
        methods: which methods.
        status: answer with this status instead; 0: forward the request.
        cut: forward only this share of the body of an answer, then close the connection.
        seconds: wait before the answer.
        lost: how many requests are forwarded and get no answer.
        hidden: which objects no listing shows; none by default.
        left_out: headers, in lower case, that are not forwarded, as by a proxy that does not know them.
        seen: the requests that came, as `METHOD path`.
    """

    matching: str = ""
    methods: tuple[str, ...] = ("GET", "PUT", "POST", "DELETE", "HEAD")
    status: int = 0
    cut: float = 1.0
    seconds: float = 0.0
    lost: int = 0
    hidden: str = ""
    left_out: tuple[str, ...] = ()
    seen: list[str] = field(default_factory=list)

    def none(self) -> None:
        """Forwards everything from now on."""
        self.matching, self.status, self.cut, self.seconds, self.lost, self.hidden = "", 0, 1.0, 0.0, 0, ""
        self.methods, self.left_out = Faults.methods, ()


class _Forwarding:
    """The requests that are being forwarded; none is any more once it is closed, however late its turn comes."""

    def __init__(self) -> None:
        self._changed, self._count, self._closed = threading.Condition(), 0, False

    def begin(self) -> bool:
        with self._changed:
            self._count += not self._closed
            return not self._closed

    def end(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            assert self._changed.wait_for(lambda: not self._count, 30)


def without(hidden: str, listing: bytes) -> bytes:
    """A listing as S3 sends it, without the objects whose key matches."""

    def shown(entry: re.Match[bytes]) -> bytes:
        return b"" if hidden and re.search(hidden.encode(), entry[1]) else entry[0]

    return re.sub(rb"<Contents>\s*<Key>(.*?)</Key>.*?</Contents>", shown, listing, flags=re.DOTALL)


@contextmanager
def fault_proxy(endpoint: str) -> Iterator[tuple[str, Faults]]:
    """A proxy before a server: its address, and its faults, which may be changed at any time."""
    faults, target, forwarding = Faults(), urlsplit(endpoint), _Forwarding()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def _forward(self) -> None:
            faults.seen.append(f"{self.command} {self.path}")
            hit = self.command in faults.methods and re.search(faults.matching, self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(faults.seconds if hit else 0)
            if hit and faults.status:
                self.send_response(faults.status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if not forwarding.begin():
                self.close_connection = True
                return
            try:
                connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=10)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in faults.left_out}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = without(faults.hidden, answer.read()) if "list-type" in self.path else answer.read()
                connection.close()
            finally:
                forwarding.end()
            if hit and faults.lost:
                faults.lost -= 1
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if hit and faults.cut < 1:
                self.wfile.write(content[: int(len(content) * faults.cut)])
                self.close_connection = True
            elif self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

        def log_message(self, *_: object) -> None:
            """Writes nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client went away
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        forwarding.close()
        server.shutdown()
        thread.join()
        server.server_close()
