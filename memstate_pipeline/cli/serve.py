"""The `serve` command: the HTTP API on this store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from socket import socket
from typing import TYPE_CHECKING, Annotated

import typer

from memstate_pipeline.cli.shared.errors import Failure, missing_extra, report
from memstate_pipeline.cli.shared.output import Json, note, show

if TYPE_CHECKING:
    from memstate_core.run.store import Store
    from memstate_core.serve.options import Options


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0 picks a free one.")
    ] = 8420,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Record what queries return as accessed.")
    ] = True,
    max_body_mib: Annotated[
        int, typer.Option(min=1, max=1024, metavar="N", help="Maximum size of a request body, in MiB.")
    ] = 1,
    rate_limit: Annotated[
        float,
        typer.Option(
            min=0, metavar="N", help="Requests per second of a key without a rate of its own; 0 for no limit."
        ),
    ] = 200.0,
    request_seconds: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Maximum duration of a request.")
    ] = 30.0,
    max_age: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="HOURS",
            help="Age from which /readyz reports a snapshot as stale; schedule.skip_unchanged_days is added to it.",
        ),
    ] = None,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="A reverse proxy, or its network, whose X-Forwarded-For to believe; may be given several times.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, max=64, metavar="N", help="Processes that answer on the port; about one for each core."),
    ] = 1,
    replica_of: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Serve read-only what `memstate publish` puts at this URL."),
    ] = None,
    follow_seconds: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How often a replica asks for a new snapshot.")
    ] = 5.0,
    cache_mib: Annotated[
        int, typer.Option(min=0, metavar="N", help="What a replica keeps beside the snapshots it serves, in MiB.")
    ] = 4096,
    open_shards: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Shards that a replica keeps open, each fetched when needed. Default: all."
        ),
    ] = None,
    accept_writes: Annotated[
        bool,
        typer.Option("--accept-writes", help="As a replica, take writes for a store that fetches them."),
    ] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Serve the published snapshot over HTTP.

    Accepts observations and feedback for the next run. With --replica-of it is a replica: the home has its settings,
    keys and the fetched files; the keys of the store are accepted, too. Replicas are read-only without
    --accept-writes and publish.accept_writes of the store.
    """
    from memstate_core.serve.options import Options, api_key

    for option, given in (("--accept-writes", accept_writes), ("--open-shards", open_shards is not None)):
        if given and replica_of is None:
            raise typer.BadParameter(f"{option} is for replicas, expected --replica-of URL beside it")
    store: Store = context.obj.store
    options = Options(
        settle=True,
        api_key=api_key(os.environ),
        record=record,
        body_limit=max_body_mib << 20,
        rate_limit=rate_limit,
        request_seconds=request_seconds,
        max_age=None if max_age is None else 3600 * (max_age + 24 * store.settings.schedule.skip_unchanged_days),
        trusted_proxies=_trusted(proxies or ()),
        replica_of=replica_of,
        follow_seconds=follow_seconds,
        cache_mib=cache_mib,
        open_shards=open_shards,
        accept_writes=accept_writes,
    )
    _require_installed(as_json)
    _require_key(host, store, options)
    _run(store, _listening(host, port, as_json), options, workers, as_json)


def _trusted(proxies: Sequence[str]) -> tuple[str, ...]:
    from memstate_core.serve.options import trusted_proxy

    try:
        return tuple(map(trusted_proxy, proxies))
    except ValueError as error:
        raise typer.BadParameter(f"--trusted-proxy: {error}") from error


def _require_installed(as_json: bool) -> None:
    try:
        import memstate_core.serve.server  # noqa: F401
    except ImportError as error:
        report(missing_extra(error, "serve"), as_json)
        raise typer.Exit(1) from None


def _listening(host: str, port: int, as_json: bool) -> socket:
    from memstate_core.serve import server

    try:
        return server.bound(host, port)
    except OSError as error:
        message = f"cannot listen on {host} port {port}: {error.strerror}; choose another --port"
        report(Failure("OSError", message), as_json)
        raise typer.Exit(1) from None


def _run(store: Store, listening: socket, options: Options, workers: int, as_json: bool) -> None:
    """Names the address and answers until it is stopped, in this process or in several workers."""
    from memstate_core.serve import server

    url = server.address(listening)
    show({"url": url, "docs": f"{url}/docs"}, as_json, lambda: [url])
    note("Press Ctrl-C to stop.")
    if workers == 1:
        server.run(store, listening, options)
    else:
        from memstate_core.serve.workers.supervisor import Supervisor

        Supervisor(store, listening, options, workers).run()


def _require_key(host: str, store: Store, options: Options) -> None:
    """Refuses to answer other machines without a key; asks the source of a replica before anything listens."""
    from memstate_core.serve.auth import key_file
    from memstate_core.serve.options import KEY_VARIABLE, is_loopback

    has_key = options.api_key is not None or bool(key_file.read(store.home.keys))
    if options.replica_of is not None:
        from memstate_core.serve.replica.service import published_keys

        has_key |= bool(published_keys(store.home, options.replica_of, options))
    if not has_key and not is_loopback(host):
        raise typer.BadParameter(
            f"--host {host} is reachable from other machines: create a key with `memstate keys add`, set "
            f"{KEY_VARIABLE}, or listen on 127.0.0.1"
        )
