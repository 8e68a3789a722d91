"""Moto's server of S3's protocol, on a free port, whose conditional puts are decided one at a time, as those of S3 are.

Moto compares the condition and stores the object in two steps, between which another of its threads may do the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


def one_at_a_time(served: WSGIApplication) -> WSGIApplication:
    """An application that answers one put with a condition after another."""
    deciding = threading.Lock()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT" or not any(name in environ for name in CONDITIONS):
            return served(environ, start_response)
        with deciding:
            return list(served(environ, start_response))

    return answer


if __name__ == "__main__":
    run_simple("127.0.0.1", 0, one_at_a_time(DomainDispatcherApplication(create_backend_app)), threaded=True)
