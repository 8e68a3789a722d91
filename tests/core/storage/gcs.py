"""The part of Google Cloud Storage's XML API that objects need, in memory: no registry has a server of that protocol.

It answers as the reference of the XML API says: every write gives an object a new generation, and
`x-goog-if-generation-match` is the condition of a put, 0 for an object that does not exist.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

BUCKET = "bucket"
_ENTRY = "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>"


class Objects:
    """The objects of the bucket by name, each with its generation, and the parts of uploads."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[bytes, int]] = {}
        self.moments: dict[str, datetime] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.numbers, self.lock = count(1), threading.Lock()
        self.conditions: list[str] = []

    def put(self, name: str, content: bytes, condition: str | None) -> int | None:
        """The generation of an object that is put; None if its condition does not hold."""
        with self.lock:
            if condition is not None:
                self.conditions.append(condition)
                if int(condition) != self.held.get(name, (b"", 0))[1]:
                    return None
            self.held[name], self.moments[name] = (content, next(self.numbers)), datetime.now(UTC)
            return self.held[name][1]

    def listing(self, prefix: str, delimiter: str) -> str:
        """The names below a prefix; with a delimiter, what is below the next one as one common prefix."""
        names = sorted(name for name in self.held if name.startswith(prefix))
        cut = {name: name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "") for name in names}
        common = sorted({prefix + first + delimiter for first, found, _ in cut.values() if found})
        entries = [self._entry(name) for name in names if not cut[name][1]]
        folders = [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in common]
        return f"<ListBucketResult>{''.join(entries + folders)}</ListBucketResult>"

    def _entry(self, name: str) -> str:
        content, generation = self.held[name]
        moment = self.moments[name].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return _ENTRY.format(escape(name), moment, f'"e{generation}"', len(content))


@contextmanager
def gcs_server() -> Iterator[tuple[str, Objects]]:
    """The server; its address and its objects."""
    objects = Objects()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, status: int, body: bytes = b"", generation: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", formatdate(usegmt=True))
            if generation is not None:
                self.send_header("ETag", f'"e{generation}"')
                self.send_header("x-goog-generation", str(generation))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _asked(self) -> tuple[str, dict[str, str], bytes]:
            found = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(found.query, keep_blank_values=True).items()}
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return unquote(found.path).removeprefix(f"/{BUCKET}").removeprefix("/"), query, content

        def do_PUT(self) -> None:
            name, query, content = self._asked()
            if "uploadId" in query:
                objects.parts[query["uploadId"]][int(query["partNumber"])] = content
                self._answer(200, generation=0)
                return
            put = objects.put(name, content, self.headers.get("x-goog-if-generation-match"))
            self._answer(412 if put is None else 200, generation=put)

        def do_POST(self) -> None:
            name, query, _ = self._asked()
            if "uploads" in query:
                upload = f"u{next(objects.numbers)}"
                objects.parts[upload] = {}
                result = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            else:
                content = b"".join(part for _, part in sorted(objects.parts.pop(query["uploadId"]).items()))
                put = objects.put(name, content, self.headers.get("x-goog-if-generation-match"))
                result = f"<CompleteMultipartUploadResult><ETag>e{put}</ETag></CompleteMultipartUploadResult>"
            self._answer(200, result.encode(), objects.held.get(name, (b"", 0))[1])

        def do_GET(self) -> None:
            name, query, _ = self._asked()
            if not name:
                body = objects.listing(query.get("prefix", ""), query.get("delimiter", ""))
                self._answer(200, body.encode())
            elif name in objects.held:
                self._answer(200, *objects.held[name])
            else:
                self._answer(404)

        do_HEAD = do_GET

        def do_DELETE(self) -> None:
            name, _, _ = self._asked()
            self._answer(204 if objects.held.pop(name, None) else 404)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", objects
    finally:
        server.shutdown()
        server.server_close()


def use_gcs(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Gives the environment access to the server; the URL of its bucket."""
    account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
    key = json.dumps(account | {"private_key_id": ""})
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", key)
    return f"gs://{BUCKET}"
