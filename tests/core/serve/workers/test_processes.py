"""`memstate serve --workers 2` with real processes: all give the same answer, and none is missed for long."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memstate_core.serve.workers.supervisor import METRICS_VARIABLE
from tests.core.serve.conftest import Client
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.processes import children, is_alive, until

pytestmark = pytest.mark.slow

Running = tuple[Client, subprocess.Popen[str]]
INES = {"type": "user", "id": "ines"}
WORKER = "spawn_main"
"""What the command of a worker has in it."""
TRIES = 16
"""Connections until both workers have very probably been asked."""


@contextmanager
def workers(home: Path) -> Iterator[Running]:
    """The command with two workers, once a snapshot is served; killed at the end if it still runs."""
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "serve", "--port", "0", "--json"]
    with (home / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--workers", "2"], env=clean_environment(), stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        yield Client(json.loads(process.stdout.readline())["url"]).until_ready(), process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def home(first_night: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(first_night, tmp_path_factory.mktemp("workers") / "home"))


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Running]:
    with workers(home) as found:
        until(lambda: len(children(found[1].pid, WORKER)) == 2)
        yield found


def count(client: Client, name: str) -> int:
    """The sum of a metric over its labels."""
    text = client.get("/metrics").content.decode()
    return sum(int(float(value)) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


def ask(client: Client, **given: Any) -> Any:
    answer = client.post("/v1/query", {"q": "Is the gate of the ferry yard open?"} | given)
    assert answer.status == 200, answer.content
    return answer.document


def test_every_worker_gives_the_same_answer_and_all_are_counted(
    running: Running,
) -> None:
    client, _ = running
    before = count(client, 'memstate_http_requests_total{method="POST",route="/v1/query",status="200"}')
    answers = [ask(client) for _ in range(TRIES)]
    assert all(each == answers[0] for each in answers)
    assert answers[0]["candidates"][0]["title"] == "Old Ferry Yard"
    text = client.get("/metrics").content.decode()
    found = re.search(r'^memstate_http_requests_total{[^}]*route="/v1/query"[^}]*} (\S+)$', text, re.MULTILINE)
    assert found is not None
    assert int(float(found[1])) - before == TRIES
    assert "process_resident" not in text, "which would be those of one worker"


def test_what_one_worker_accepts_is_pending_at_the_others_at_once(
    running: Running,
) -> None:
    client, _ = running
    for number in range(4):
        said = {"scope": INES, "text": f"Quokka number {number} lives at the ferry yard."}
        name = client.post("/v1/ingest", said).document["observation_ids"][0]
        for _ in range(TRIES // 4):
            answer = ask(client, q=f"Where does quokka number {number} live?", pending=True, record=False)
            assert name in [each["observation_id"] for each in answer["evidence"]]


def test_an_observation_with_other_content_is_refused_by_every_worker(
    running: Running,
) -> None:
    client, _ = running
    said = {"scope": INES, "observation_id": "o-1", "observed_at": "2026-04-06T00:00:00Z"}
    assert client.post("/v1/ingest", said | {"text": "The first."}).status == 202
    other = [client.post("/v1/ingest", said | {"text": "The second."}).status for _ in range(TRIES // 2)]
    same = [client.post("/v1/ingest", said | {"text": "The first."}).status for _ in range(TRIES // 2)]
    assert (set(other), set(same)) == ({409}, {202})


def test_a_killed_worker_is_replaced_and_the_other_answers_meanwhile(running: Running, home: Path) -> None:
    client, process = running
    ask(client)
    before, counted = children(process.pid, WORKER), count(client, "memstate_uses_noted_total")
    assert counted > 0
    os.kill(before[0], signal.SIGKILL)
    until(lambda: before[0] not in children(process.pid, WORKER))
    ends = time.monotonic() + 90
    while len(children(process.pid, WORKER)) < 2 or time.monotonic() < ends - 80:
        ask(client, record=False)
        assert time.monotonic() < ends
    assert len(set(children(process.pid, WORKER)) - set(before)) == 1
    assert count(client, "memstate_uses_noted_total") >= counted
    lines = [json.loads(line) for line in (home / "serve.log").read_text().splitlines() if line.startswith("{")]
    assert [line["exit_code"] for line in lines if "exit_code" in line] == [-signal.SIGKILL]


def held(processes: list[int], connections: list[HTTPConnection]) -> list[int]:
    """How many of these connections each process has accepted."""
    mine = {each.sock.getsockname()[1] for each in connections}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    theirs = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) in mine}
    return [sum(target in theirs for target in _open_files(each)) for each in processes]


def _open_files(process: int) -> Iterator[str]:
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            yield str(each.readlink())


@contextmanager
def open_connections(client: Client, number: int) -> Iterator[list[HTTPConnection]]:
    """Connections that were opened at once, asked once each and are kept open."""
    address = client.url.removeprefix("http://")
    connections = [HTTPConnection(address, timeout=60) for _ in range(number)]
    try:
        for each in connections:
            each.connect()
        for each in connections:
            each.request("GET", "/healthz")
            assert each.getresponse().read()
        yield connections
    finally:
        for each in connections:
            each.close()


def accepting(worker: int) -> list[bool]:
    """Which workers accept connections, by the folder that one has in its environment for the metrics library."""
    given = dict(line.partition("=")[::2] for line in Path(f"/proc/{worker}/environ").read_text().split("\0"))
    return [bool(each) for each in np.fromfile(Path(given[METRICS_VARIABLE]) / "open.connections", np.int64)[:2]]


def ready(process: subprocess.Popen[str]) -> list[int]:
    """Both workers, once each accepts connections; one may still be starting."""
    until(lambda: len(children(process.pid, WORKER)) == 2)
    mine = children(process.pid, WORKER)
    until(lambda: accepting(mine[0]) == [True, True])
    return mine


def test_connections_that_are_kept_open_are_spread_evenly(running: Running) -> None:
    """Nearly: where other work keeps a worker waiting, another may take its connection."""
    client, process = running
    mine = ready(process)
    with open_connections(client, 12) as connections:
        assert sum(held(mine, connections)) == 12
        assert min(held(mine, connections)) >= 3
        left = [each for each in connections if not held(mine[:1], [each])[0]]
        for each in set(connections) - set(left):
            each.close()
        with open_connections(client, 12 - len(left)) as later:
            assert sum(held(mine, left + later)) == 12
            assert held(mine, later)[0] > held(mine, later)[1]


def test_a_worker_that_hangs_holds_no_connection_up(running: Running) -> None:
    client, process = running
    hanging, other = ready(process)
    os.kill(hanging, signal.SIGSTOP)
    try:
        with open_connections(client, 8) as connections:
            assert held([other], connections) == [8]
    finally:
        os.kill(hanging, signal.SIGCONT)


def test_no_connection_is_left_to_a_worker_that_was_killed(running: Running) -> None:
    _, process = running
    killed, other = ready(process)
    os.kill(killed, signal.SIGKILL)
    until(lambda: sum(accepting(other)) == 1)
    until(lambda: accepting(other) == [True, True])


def test_all_serve_what_the_next_night_publishes_and_end_with_complete_journals(home: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(home, tmp_path / "home"))
    with workers(own) as (client, process):
        assert run_memstate(own, "maintain", "--now", "2026-04-09T00:00:00Z").code == 0
        until(lambda: all(ask(client, record=False)["snapshot"] == "s0/2" for _ in range(TRIES)))
        assert count(client, "memstate_snapshot_swaps_total") == 4
        for _ in range(TRIES):
            ask(client)
        noted = count(client, "memstate_uses_noted_total")
        mine = children(process.pid, WORKER)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert [each for each in mine if is_alive(each)] == []
    kept = [json.loads(line) for path in own.glob("accesses/*.jsonl") for line in path.read_text().splitlines()]
    assert sum("topic_id" in line for line in kept) == noted >= TRIES


def test_workers_end_with_their_supervisor(home: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(home, tmp_path / "home"))
    with workers(own) as (_, process):
        until(lambda: len(children(process.pid, WORKER)) == 2)
        mine = children(process.pid, WORKER)
        process.kill()
        process.wait()
        until(lambda: not any(map(is_alive, mine)), 30)
