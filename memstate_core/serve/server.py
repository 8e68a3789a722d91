"""Runs the application: bound socket, signals, graceful shutdown."""

from __future__ import annotations

import signal
import socket

import uvicorn

from memstate_core.run.store import Store
from memstate_core.serve.app import application
from memstate_core.serve.blas_threads import on_one_thread
from memstate_core.serve.http.connections import LimitedConnection
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service
from memstate_core.serve.telemetry.log import log_as_json
from memstate_core.serve.workers.fair_server import FairServer
from memstate_core.serve.workers.shared import Shared

_BACKLOG = 512


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Raises:
        OSError: the address is in use or invalid.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def service(store: Store, options: Options, shared: Shared | None = None) -> Service:
    """The service of a store, or of a replica if the options name a source; errors as for `ReplicaService`."""
    if options.replica_of is None:
        return Service(store, options, shared)
    from memstate_core.serve.replica.service import ReplicaService

    return ReplicaService(store, options.replica_of, options, shared)


def server(store: Store, options: Options, shared: Shared | None = None) -> uvicorn.Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        application(service(store, options, shared)),
        log_config=None,
        access_log=False,
        server_header=False,
        http=LimitedConnection,
        ws="none",
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        timeout_keep_alive=options.keep_alive_seconds,
        lifespan="on",
        timeout_graceful_shutdown=options.shutdown_seconds,
    )
    return uvicorn.Server(config) if shared is None else FairServer(config, shared.connections())


def run(store: Store, listening: socket.socket, options: Options, shared: Shared | None = None) -> None:
    """Serves until SIGTERM or SIGINT; then running requests finish and journals are completed.

    With `shared`, as one of several workers.
    """
    log_as_json(options.api_key)
    on_one_thread()
    serving = server(store, options, shared)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn handles signals only once its loop runs, and at the end raises them again for the handler before it:
        # a signal that came earlier must not be lost, nor a graceful shutdown look like a failure.
        signal.signal(number, serving.handle_exit)
    serving.run(sockets=[listening])
