"""Context packs over HTTP: how long one takes on a store with every kind of item, by policy.

The store is that of `made_store.py`, with a core block, an active session and resources in each scope, added by a
night. The first questions only warm the server; the others are asked once, so each is encoded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_store
import numpy as np
import serving
from measures import Measure
from questions import ROOT, running

from memstate_core.retrieve.routing import POLICIES

NIGHT = "2026-02-02T00:00:00Z"
RESOURCES = 20
"""Resources of a scope."""
BUDGET = 1000
TARGET_MS = 25.0


def prepared(home: Path, topics: int, scopes: int) -> None:
    """A store of this size with objects of memory in each scope; one that is there already stays."""
    fresh = not home.exists()
    made_store.make(home, topics, topics // 2, scopes, 7)
    if not fresh:
        return
    names = serving.served_scopes(home)
    dump = home / "objects.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for name in names for row in _objects(name)))
    program = [sys.executable, "-m", "memstate_pipeline", "--home", str(home)]
    for command in (["import", str(dump), "--now", NIGHT], ["maintain", "--now", NIGHT]):
        subprocess.run([*program, *command, "--json"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    dump.unlink()


def _objects(scope: str) -> Iterator[dict[str, Any]]:
    kind, _, name = scope.partition(":")
    own = {"scope": {"type": kind, "id": name}, "observed_at": "2026-02-01T00:00:00Z"}
    yield own | {"memory": {"type": "core_block", "label": "rules", "content": "Be brief. Never guess a date."}}
    yield own | {"memory": {"type": "session_state", "session_id": "s", "current_goal": "Sort the harbour files"}}
    for number in range(RESOURCES):
        content = " ".join(f"Paragraph {part} of document {number} about the harbour." for part in range(40))
        form = {"type": "resource", "uri": f"doc:/{number}", "title": f"Document {number}", "content": content}
        yield own | {"memory": form}


def measured(home: Path, topics: int, scopes: int, count: int) -> list[Measure]:
    """Milliseconds that a pack takes, by policy."""
    prepared(home, topics, scopes)
    file = home / "questions.jsonl"
    serving.write_questions(home, file, count, 3)
    asked = [json.loads(line) for line in file.read_text().splitlines()]
    with running(ROOT, home) as server:
        shares = (asked[part::3] for part in range(3))
        return [one for policy, own in zip(POLICIES, shares, strict=True) for one in _policy(server.url, own, policy)]


def _policy(url: str, asked: list[dict[str, Any]], policy: str) -> list[Measure]:
    bodies = [{"q": each["q"], "scope": each["scope"], "budget": BUDGET, "policy": policy} for each in asked]
    times = [1000 * _seconds(url, body) for body in bodies]
    p50, p99 = np.percentile(times[len(times) // 4 :], [50, 99])
    return [
        Measure(f"context pack, {policy}, p50", float(p50), "ms", most=TARGET_MS),
        Measure(f"context pack, {policy}, p99", float(p99), "ms"),
    ]


def _seconds(url: str, body: dict[str, Any]) -> float:
    request = urllib.request.Request(
        f"{url}/v1/context", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - began
