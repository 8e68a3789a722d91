"""Prefixes of the embedding model: what is served keeps its own until a night has embedded all of it again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memstate_core.embed.encoder import PACKAGED_MODEL, Encoder
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import open_store
from memstate_core.state.current import served
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow
PREFIXES = '[embedding]\nquery_prefix = "query: "\npassage_prefix = "passage: "\n'
TURNS = ["We moved the boat to the north quay.", "The sail is torn at the seam.", "Lunch was soup again."]
ASKED = "Where does the boat lie?"


def dump(folder: Path) -> Path:
    rows = [
        {"kind": "user_message", "scope": {"type": "user", "id": "a"}, "session_id": "s", "turn": at, "text": text}
        | {"observed_at": "2026-01-01T10:00:00Z"}
        for at, text in enumerate(TURNS)
    ]
    path = folder / "turns.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def vectors(home: Path) -> np.ndarray:
    """The vectors of the turns, in their order."""
    store = open_store(home, {})
    (snapshot,) = served(store.home, store.shards)
    with SnapshotReader(snapshot) as reader:
        evidence = reader.evidence("user:a")
        rows = [evidence.frame["text"].to_list().index(text) for text in TURNS]
        return np.array(evidence.vectors[evidence.vector_rows[rows]])


def similarity(home: Path) -> float:
    (candidate,) = run_memstate(home, "query", ASKED, "--json").document["candidates"]
    return float(candidate["similarity"])


def test_vectors_of_other_prefixes_are_never_compared(tmp_path: Path) -> None:
    home, model = tmp_path / "home", Encoder(PACKAGED_MODEL)
    assert run_memstate(home, "import", str(dump(tmp_path)), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    plain = similarity(home)
    assert np.allclose(vectors(home), model.encode(TURNS), atol=1e-5)

    (home / "memstate.toml").write_text(PREFIXES)
    assert similarity(home) == pytest.approx(plain, abs=1e-6), "what is served has no prefixes yet"
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json").document
    assert night["counts"]["topics_embedded"] == 1
    assert np.allclose(vectors(home), model.encode([f"passage: {text}" for text in TURNS]), atol=1e-5)
    (topic,) = run_memstate(home, "query", ASKED, "--json").document["candidates"]
    record = run_memstate(home, "topic", topic["topic_id"], "--json").document
    assert json.loads(record["embedding_model"]) == {
        "model": PACKAGED_MODEL, "passage_prefix": "passage: ", "query_prefix": "query: "
    }  # fmt: skip
    title = f"passage: {record['title']}\n{record['summary']}"
    asked, named = model.encode([f"query: {ASKED}", title])
    assert topic["similarity"] == pytest.approx(float(asked @ named), abs=1e-4)

    assert run_memstate(home, "pin", topic["topic_id"], "--now", NIGHT).code == 0
    assert run_memstate(home, "verify").code == 0
    (home / "memstate.toml").unlink()
    assert run_memstate(home, "rebuild").code == 0
    assert similarity(home) == pytest.approx(topic["similarity"], abs=1e-6), "a rebuild keeps the recorded prefixes"
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json").document
    assert night["counts"]["topics_embedded"] == 1
    assert similarity(home) == pytest.approx(plain, abs=1e-6)
