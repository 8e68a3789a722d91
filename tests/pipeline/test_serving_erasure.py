"""Servers that run while a subject is erased: afterwards they answer, hold and record nothing of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.ids import uuid_text
from tests.core.serve.conftest import Client, serving_process
from tests.pipeline.conftest import clean_environment, fork_memstate
from tests.pipeline.erased_homes import dump, holding

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the files that a process holds are read in /proc"),
]

MARK = "zq7marker"
SCOPE = {"type": "user", "id": f"{MARK}-user"}
LET_GO_SECONDS = 20.0
"""A server opens and warms the new snapshot on a busy machine."""

WITHOUT_POLLS = """
import sys
from memstate_core.serve.snapshots.watcher import Watcher

begin = Watcher.__init__
Watcher.__init__ = lambda self, serving, seconds, counters=None: begin(self, serving, 3600.0, counters)
sys.argv[0] = "memstate"
from memstate_pipeline.cli.main import main
main()
"""
"""A server that looks for new snapshots once an hour, so that the poll does not hide what a request does."""


def row(name: str, scope: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"observation_id": name, "scope": scope, "observed_at": "2026-04-05T00:00:00Z"} | more


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home, other = tmp_path_factory.mktemp("serving") / "home", {"type": "user", "id": "ines"}
    rows = [
        row("boat", SCOPE, topic_key="boat", title=f"Boat of {MARK}", summary=f"The {MARK} boat in the harbour"),
        row("said", SCOPE, actor="Bo", session_id="s", turn=0, text=f"The {MARK} boat needs paint."),
        row("yard", other, topic_key="yard", title="Boat yard", summary="Where boats are painted"),
    ]
    assert fork_memstate(home, "import", str(dump(home.parent / "d.jsonl", rows))).code == 0
    assert fork_memstate(home, "maintain", "--now", "2026-04-06T02:00:00Z").code == 0
    late = row("late", SCOPE, topic_key="late", title=f"Late {MARK}", text=f"The {MARK} boat was sold.")
    assert fork_memstate(home, "import", str(dump(home.parent / "e.jsonl", [late]))).code == 0
    return home


@pytest.fixture
def home(lived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lived, tmp_path / "home"))


def everything(client: Client) -> str:
    """What the routes answer about the subject, as far as they answer; first those that read the graph alone.

    Files that are gone make a search look for a new snapshot; an open graph can still be read.
    """
    answers = [client.get(path) for path in ("/v1/topics", "/v1/runs", "/readyz", "/health/graph")]
    asked = {"q": f"The {MARK} boat", "pending": True, "evidence_k": 20, "top_k": 20}
    answers += [
        client.post("/v1/query", asked | more)
        for more in ({}, {"as_of": "2026-05-01T00:00:00Z"}, {"scope": f"user:{MARK}-user"}, {"pending": False})
    ]
    answers += [client.post("/v1/context", {"q": f"The {MARK} boat", "budget": 500})]
    return "".join(json.dumps(_without_question(answer.document)) for answer in answers if answer.status < 500)


def _without_question(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("query", "q", "question")}


def held(process: int, home: Path) -> list[str]:
    """The deleted files of a home that a process has mapped or open."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            lines.append(str(link.readlink()))
        except OSError:
            continue
    return [line for line in lines if str(home) in line and line.endswith("(deleted)")]


def eventually(found: Callable[[], list[str]]) -> list[str]:
    ends = time.monotonic() + LET_GO_SECONDS
    while (last := found()) and time.monotonic() < ends:
        time.sleep(0.1)
    return last


def erase(home: Path) -> None:
    erased = fork_memstate(home, "erase", "--scope", f"user:{MARK}-user")
    assert erased.code == 0, erased.stderr


def test_a_server_answers_and_keeps_nothing_of_what_was_erased(home: Path) -> None:
    with serving_process(home, start=("-c", WITHOUT_POLLS)) as (client, process):
        client.until_ready()
        assert MARK in everything(client)
        pid = process._process.pid
        assert pid is not None
        erase(home)
        assert MARK not in everything(client)
        assert client.post("/v1/query", {"q": "Boat yard"}).document["candidates"]
        assert eventually(lambda: held(pid, home)) == []
        process.terminate()
        process.wait(60)
    (home / "serve.log").unlink()
    assert holding(home, MARK) == []
    collected = fork_memstate(home, "maintain", "--now", "2026-04-08T02:00:00Z")
    assert collected.code == 0, collected.stderr
    assert holding(home, MARK) == []


def test_an_mcp_server_answers_and_keeps_nothing_of_what_was_erased(home: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_POLLS, "--home", str(home), "mcp"]
    with (home.parent / "log").open("wb") as log:
        server = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, env=clean_environment(), text=True)
        try:
            tools = Tools(server)
            assert MARK in tools.asked()
            erase(home)
            assert MARK not in tools.asked()
            assert eventually(lambda: held(server.pid, home)) == []
            server.communicate(timeout=60)
            assert server.returncode == 0
        finally:
            server.kill()
            server.communicate()
    assert holding(home, MARK) == []


class Tools:
    """A client of MCP over standard input and output, as small as it can be."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server, self._number = server, 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self._send("initialize", client)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def asked(self) -> str:
        """What is known of the topic, which the open graph alone answers, and what the search answers."""
        topic = self._called("memory_topic", topic_id=uuid_text("key", f"user:{MARK}-user", "boat"))
        found = self._called("memory_query", query="Which boat needs paint?", pending=True)
        assert not found["result"].get("isError"), found
        return json.dumps([topic, found])

    def _called(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self._send("tools/call", {"name": name, "arguments": arguments})

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        while True:
            line = self._server.stdout.readline()
            assert line, "the server ended"
            found: dict[str, Any] = json.loads(line)
            if found.get("id") == self._number:
                return found

    def _write(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()
