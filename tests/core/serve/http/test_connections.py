"""Connections below HTTP: heads and trailers that are too large or too slow, clients that do not read."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import closing

import pytest

from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.serve.http import connections
from memstate_core.serve.options import Options
from tests.core.serve.auth.test_keys import made
from tests.core.serve.conftest import Client, served

pytestmark = pytest.mark.slow


def connected(client: Client) -> socket.socket:
    host, _, port = client.url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def test_a_head_that_never_ends_is_cut_off(client: Client) -> None:
    with closing(connected(client)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for number in range(40):
            try:
                connection.sendall(b"X-Header-%d: " % number + b"x" * 4096 + b"\r\n")
            except OSError:
                break
        assert received(connection).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400", b""))
    assert client.get("/healthz").status == 200


def test_a_large_head_is_refused_and_an_ordinary_one_is_not(client: Client) -> None:
    with closing(connected(client)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(18):
            connection.sendall(b"X-More: " + b"x" * 4000 + b"\r\n")
            time.sleep(0.005)
        assert received(connection).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
    assert client.get("/healthz", X_More="x" * 16_000).status == 200


def test_a_url_that_is_too_long_is_refused_with_a_problem_document(client: Client) -> None:
    with closing(connected(client)) as connection:
        connection.sendall(b"GET /healthz?more=" + b"x" * 70_000)
        head, _, body = received(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert b"content-type: application/problem+json" in head.lower()
    assert f"content-length: {len(body)}".encode() in head.lower()
    assert json.loads(body)["type"] == "urn:memstate:problem:head-too-large"


def test_an_idle_connection_is_closed(harbour_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.LimitedConnection, "head_seconds", 0.3)
    with served(harbour_store, Options(record=False, keep_alive_seconds=1)) as client:
        for said in (b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he"):
            with closing(connected(client)) as connection:
                connection.sendall(said)
                assert (b" 200 OK" in received(connection)) is (b"\r\n\r\n" in said)


def test_a_slow_body_is_not_a_slow_head(harbour_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.LimitedConnection, "head_seconds", 0.2)
    with served(harbour_store, Options(record=False)) as client:
        client.until_ready()
        body = b'{"q": "the yard"}'
        connection = http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=30)
        connection.putrequest("POST", "/v1/query")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        time.sleep(0.5)
        connection.send(body)
        assert connection.getresponse().status == 200
        connection.close()


def test_an_answer_before_the_whole_body_arrives(keyed_store: Store) -> None:
    """A client that is refused while still sending receives the reason, also on connections that stay open."""
    key_file.add(keyed_store.home.keys, made().key)
    with served(keyed_store, Options(record=False)) as client:
        connection = http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=30)
        for _ in range(3):
            connection.request("POST", "/v1/query", b"x" * 900_000, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, b"unauthorized" in answer.read()) == (401, True)
        connection.close()


def test_trailers_are_counted(client: Client) -> None:
    """What comes after the last chunk is not a body: the limit on bodies does not see it."""
    with closing(connected(client)) as connection:
        head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        sent = 0
        try:
            while sent < 8 << 20:
                sent += connection.send(b"X-Trailer: " + b"x" * 4000 + b"\r\n")
        except OSError:
            pass
        assert received(connection) == b""
    assert sent < 8 << 20
    assert client.get("/healthz").status == 200


def test_chunks_and_a_few_trailers_are_no_harm(client: Client) -> None:
    with closing(connected(client)) as connection:
        head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        chunks = b"".join(b"1\r\n%c\r\n" % each for each in b'{"q": "' + b"gate " * 3000 + b'"}')
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        connection.sendall(b"0\r\nX-Trailer: x\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 200")


def test_a_client_that_never_reads_is_dropped(keyed_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.LimitedConnection, "stall_seconds", 0.3)
    lost = threading.Event()

    class Watched(connections.LimitedConnection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    monkeypatch.setattr("memstate_core.serve.server.LimitedConnection", Watched)
    with served(keyed_store, Options(record=False, keep_alive_seconds=1)) as client:
        with closing(socket.socket()) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, _, port = client.url.removeprefix("http://").partition(":")
            connection.connect((host, int(port)))
            for _ in range(400):
                try:
                    connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                except OSError:
                    break
            assert lost.wait(10), "the connection stays open for a client that reads nothing"
        assert client.get("/healthz").status == 200
