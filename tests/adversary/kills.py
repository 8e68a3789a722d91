"""Kills: a command that is killed at a random moment and run again leaves the state of a calm one.

A server that is killed has lost nothing that it acknowledged.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.ids import uuid_text
from memstate_core.night.verify import verify_store
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.store import Store
from memstate_core.state.current import served
from tests import warm
from tests.adversary.attack import a_store, imported, opened
from tests.adversary.rows import MINE, rows_of, twins
from tests.core.night.corrections import decide, shard
from tests.core.revise.nights import night, topics
from tests.core.serve.conftest import Client, serving_process
from tests.core.strategies import day
from tests.pipeline.conftest import NIGHT, clean_environment, fork_memstate, run_memstate

ADA, AL, CARD = (uuid_text("key", MINE, key) for key in ("ada", "al", "card"))
COMMANDS: dict[str, tuple[str, ...]] = {
    "maintain": ("maintain", "--now", NIGHT),
    "import": ("import", "{home}/later.jsonl", "--now", NIGHT),
    "undo": ("undo", "{merged}", "--now", NIGHT),
    "review": ("review", "--decide", "{kept}:{card}=same", "--now", NIGHT),
    "rebuild": ("rebuild",),
    "rollback": ("rollback", "1", "--now", NIGHT),
    "restore": ("restore", "{kept}", "--now", NIGHT),
    "pin": ("pin", "{kept}", "--now", NIGHT),
}
SERVER = "a server"
_KILLED = -9


def attack(random: Random, folder: Path, count: int = 3, commands: tuple[str, ...] = (*COMMANDS, SERVER)) -> int:
    """Kills some of the commands, each on a copy of one store and within the time that a calm one takes."""
    prepared = _prepared(random, folder / "prepared")
    for name in random.sample(commands, count):
        home, calm = (Path(shutil.copytree(prepared, folder / f"{state}-{name}")) for state in ("killed", "calm"))
        if name == SERVER:
            _kill_server(random, home)
        else:
            _kill(random, home, name, _calm(name, calm))
    return count


@dataclass(frozen=True)
class _Calm:
    """How long an undisturbed command takes, and the state that it leaves."""

    seconds: float
    state: list[Any]


def _prepared(random: Random, folder: Path) -> Path:
    store = a_store(folder)
    card = {"scope": {"type": "user", "id": "mine"}, "topic_key": "card", "title": "The card of Ada Lindqvist"}
    rows = [*rows_of(random, MINE, 8, "mine"), *twins(MINE), card | {"observed_at": "2026-01-02T09:00:00Z"}]
    imported(store, rows, at=4)
    night(store, 5)
    merged = verdict_decisions(shard(store), [(ADA, AL, "same")])
    assert merged is not None
    decide(store, merged, 5.5)
    imported(store, rows_of(random, MINE, 4, "waiting"), at=6)
    (folder / "later.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(random, MINE, 40, "later")))
    return folder


def _arguments(home: Path, name: str) -> list[str]:
    found = topics(opened(home))
    (merged,) = found.filter(found["state"] == "merged")["id"]
    (kept,) = {ADA, AL} - {merged}
    return [part.format(home=home, merged=merged, kept=kept, card=CARD) for part in COMMANDS[name]]


def _calm(name: str, home: Path) -> _Calm:
    began = time.monotonic()
    answer = fork_memstate(home, *_arguments(home, name))
    assert answer.code == 0, (name, answer.stderr)
    return _Calm(time.monotonic() - began, _state(opened(home)))


def _kill(random: Random, home: Path, name: str, calm: _Calm) -> None:
    arguments = _arguments(home, name)
    command = ["-m", "memstate_pipeline", "--home", str(home), *arguments]
    with Path(os.devnull).open("wb") as nowhere:
        run = warm.Process(command, clean_environment(), nowhere, nowhere)
        ends = time.monotonic() + random.uniform(0, calm.seconds)
        while run.returncode is None and time.monotonic() < ends:
            time.sleep(0.02)
        run.kill()
        ended = run.wait()
    again = run_memstate(home, *arguments)
    store = opened(home)
    assert _state(store) == calm.state, (name, ended, again.stderr)
    # What was killed after its last step may have nothing left to do, and the second one says so.
    assert again.code == 0 or name in ("undo", "restore"), (name, again.stderr)
    assert _problems(store) == [], name


def _state(store: Store) -> list[Any]:
    """What a command left: the served state, the evidence, and the decisions and accesses, each once."""
    ledger = store.ledger
    decided = ledger.scan("transitions").select("kind", "topic_id", "reason").collect()
    kept = decided.filter(decided["kind"] != "published").rows()
    return [
        [snapshot.manifest.state_hash for snapshot in served(store.home, store.shards)],
        sorted(ledger.scan("evidence").select("evidence_id").collect()["evidence_id"]),
        sorted(kept, key=str),
        ledger.count("accesses"),
    ]


def _kill_server(random: Random, home: Path) -> None:
    """Kills a server between two writes, or in one; what it acknowledged is imported."""
    with serving_process(home) as (client, process):
        client.until_ready()
        killer = Timer(random.uniform(0.05, 1.5), process.kill)
        killer.start()
        acknowledged = _written(random, client)
        killer.join()
        assert process.wait() == _KILLED
    store = opened(home)
    import_inbox(store.home, store.ledger, store.settings, now=day(400), run_id="after")
    report = collect_accesses(store.home, store.ledger, store.settings, day(400), "after")
    known = set(store.ledger.scan("evidence").select("observation_id").collect()["observation_id"])
    names = [name for name in acknowledged if name]
    assert known.issuperset(names), sorted(set(names) - known)
    assert report.accepted >= len(acknowledged) - len(names), report
    assert _problems(store) == []


def _problems(store: Store) -> list[str]:
    return [each.detail for found in verify_store(store).values() for each in found if not each.passed]


def _written(random: Random, client: Client) -> list[str]:
    """Writes until the server is gone; the acknowledged observations, and an empty name for each feedback."""
    acknowledged = []
    try:
        for number in range(100_000):
            if random.random() < 0.2:
                answer = client.post("/v1/feedback", {"topic_id": ADA, "used": True, "at": "2026-01-06T00:00:00Z"})
                names = [""]
            else:
                rows = rows_of(random, MINE, random.randrange(1, 5), f"server{number}")
                answer = client.post("/v1/ingest", rows)
                names = [str(row["observation_id"]) for row in rows]
            assert answer.status == 202, answer.content
            acknowledged += names
    except (OSError, HTTPException):
        pass  # killed; the last request got no answer, or a part of one
    return acknowledged
