"""The `serve` command: the query API on this store."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from memstate_pipeline.cli.output import Json, fail, note, show


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8420,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Count what queries return as used, from the next run on.")
    ] = True,
    max_body_mib: Annotated[int, typer.Option(min=1, max=1024, help="How large the body of a request may be.")] = 1,
    rate_limit: Annotated[
        float, typer.Option(min=0, help="Requests a second for a key that has no rate of its own; 0 for any number.")
    ] = 200.0,
    request_seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 30.0,
    max_age: Annotated[
        float | None, typer.Option(min=0, metavar="HOURS", help="From this age on readiness calls a snapshot stale.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Answer questions over HTTP from what is published; take observations and feedback for the next run."""
    from memstate_core.serve.auth import key_file
    from memstate_core.serve.options import KEY_VARIABLE, Options, api_key, is_loopback

    store, key = context.obj.store, api_key(os.environ)
    kept = key_file.read(store.home.keys)
    if key is None and not kept and not is_loopback(host):
        raise typer.BadParameter(
            f"--host {host} can be reached from other machines: make a key that callers have to show with "
            f"`memstate keys add`, or set {KEY_VARIABLE} to one, or listen on 127.0.0.1"
        )
    try:
        from memstate_core.serve import server
    except ImportError as error:
        fail(ImportError(f"{error}; the server needs more packages: pip install 'memstate[serve]'"), 1, as_json)
        raise typer.Exit(1) from None
    try:
        listening = server.bound(host, port)
    except OSError as error:
        fail(OSError(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port"), 1, as_json)
        raise typer.Exit(1) from None
    url = server.address(listening)
    show({"url": url, "docs": f"{url}/docs"}, as_json, lambda: [url])
    sys.stdout.flush()
    note("Ctrl-C ends it.")
    options = Options(
        settle=True,
        api_key=key,
        record=record,
        body_limit=max_body_mib << 20,
        rate_limit=rate_limit,
        request_seconds=request_seconds,
        max_age=None if max_age is None else 3600 * max_age,
    )
    server.run(store, listening, options)
