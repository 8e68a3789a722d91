"""`memstate serve` as a user types it: where it listens, what it refuses, how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memstate_core.serve.options import trusted_proxy
from tests import warm
from tests.core.serve.conftest import serving_process
from tests.pipeline.conftest import clean_environment, run_memstate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "memory.example"])
def test_without_a_key_it_listens_to_this_machine_only(tmp_path: Path, host: str) -> None:
    response = run_memstate(tmp_path / "home", "serve", "--host", host, "--json")
    assert response.code == 2
    assert "set MEMSTATE_API_KEY" in response.document["error"]["message"]


@pytest.mark.parametrize(
    "given", ["foo", "300.1.1.1", "10.0.0.0/99", "10.0.0.1/8", "10.0.0.1,10.0.0.2", "10.0.0.1:80", "*", "", " 10.0.0.1"]
)
def test_a_proxy_that_no_address_can_match_is_refused(tmp_path: Path, given: str) -> None:
    proxies = ("--trusted-proxy", "10.0.0.1", "--trusted-proxy", given)
    response = run_memstate(tmp_path / "home", "serve", "--port", "0", *proxies, "--json")
    assert response.code == 2
    message = response.document["error"]["message"]
    assert f"--trusted-proxy: {given!r} is no address of a reverse proxy: " in message
    assert "expected an address such as 10.0.0.5, or a network such as 10.0.0.0/8 or fd00::/8" in message


@pytest.mark.parametrize("given", ["10.0.0.5", "10.0.0.0/8", "::1", "fd00::/8"])
def test_a_proxy_is_an_address_or_a_network(given: str) -> None:
    assert trusted_proxy(given) == given


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        response = run_memstate(tmp_path / "home", "serve", "--port", str(port), "--json")
    assert response.code == 1
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in response.document["error"]["message"]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_stopped(home: Path, end: signal.Signals) -> None:
    with serving_process(home, MEMSTATE_API_KEY="k") as (client, process):
        client.until_ready()
        assert client.post("/v1/query", {"q": "the yard"}).status == 401
        response = client.post("/v1/query", {"q": "the yard"}, X_API_Key="k")
        assert (response.status, response.document["snapshot"]) == (200, "s0/1")
        runs = client.get("/v1/runs", X_API_Key="k").document["runs"]
        assert [(run["snapshot"], run["counts"]["topics_created"]) for run in runs] == [("s0/1", 2)]
        process.send_signal(end)
        assert process.wait(30) == 0
    lines = [json.loads(line) for line in (home / "serve.log").read_text().splitlines() if line.startswith("{")]
    assert {"memstate.access", "memstate.serve"} <= {line["logger"] for line in lines}
    assert not [line for line in lines if line["level"] != "info"]


EARLY = """
import os, pathlib, signal, sys
import uvicorn
from memstate_core.run.store import open_store
from memstate_core.serve import server
from memstate_core.serve.options import Options

serve = uvicorn.Server.serve

async def signalled_first(self, sockets=None):
    os.kill(os.getpid(), int(sys.argv[2]))
    await serve(self, sockets)

uvicorn.Server.serve = signalled_first
server.run(open_store(pathlib.Path(sys.argv[1])), server.bound("127.0.0.1", 0), Options())
"""
"""Signals the server before its event loop handles signals."""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_stops_it(tmp_path: Path, end: signal.Signals) -> None:
    done = warm.run(["-c", EARLY, str(tmp_path), str(end.value)], clean_environment(), timeout=60)
    assert done.returncode == 0
    assert "Finished server process" in done.stderr


def test_help_and_definitions_load_no_web_framework() -> None:
    loads = ["import memstate_pipeline.definitions as d; d.defs()", "import memstate_pipeline.cli.main"]
    for code in loads:
        script = f"import sys\n{code}\nsys.exit('fastapi' in sys.modules or 'uvicorn' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0
