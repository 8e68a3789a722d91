"""A store with models of other dimensions than the packaged one: nights, questions, verification, rebuilds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import open_store
from memstate_core.state.current import served
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.tiny_models import bag_model, bert_model

pytestmark = pytest.mark.slow
TURNS = ["We moved the boat to the north quay.", "The sail is torn at the seam.", "Lunch was soup again."]
PACKAGED = 384


def dump(folder: Path, number: int) -> Path:
    said = [
        {"kind": "user_message", "session_id": f"s{number}", "turn": at, "text": f"{text} ({number})"}
        for at, text in enumerate(TURNS)
    ]
    named = [{"title": f"Yard {number}", "fields": [{"name": "gate", "value": f"{number} open"}]}]
    common = {"scope": {"type": "user", "id": "a"}, "observed_at": f"2026-01-0{number}T10:00:00Z"}
    path = folder / f"{number}.jsonl"
    path.write_text("".join(json.dumps(row | common) + "\n" for row in [*said, *named]))
    return path


def use(home: Path, model: Path, *further: str) -> None:
    lines = ["[embedding]", f"model = {json.dumps(str(model))}", *further]
    (home / "memstate.toml").write_text("\n".join(lines) + "\n")


def dimensions(home: Path) -> set[int]:
    """Those of the graph, and of the vectors that questions are compared with."""
    store = open_store(home, {})
    (snapshot,) = served(store.home, store.shards)
    with SnapshotReader(snapshot) as reader:
        found = {reader.graph.dimension, reader.topics("user:a").vectors.shape[1]}
        return found | {reader.evidence("user:a").vectors.shape[1]}


def night(home: Path, folder: Path, number: int) -> dict[str, int]:
    assert run_memstate(home, "import", str(dump(folder, number)), "--now", NIGHT).code == 0
    answer = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert answer.code == 0, answer.stderr
    return dict(answer.document["counts"])


def asked(home: Path) -> str:
    answer = run_memstate(home, "query", f"{TURNS[0]} (1)", "--json")
    assert answer.code == 0, answer.stderr
    assert all(np.isfinite(each["similarity"]) for each in answer.document["candidates"])
    return str(answer.document["evidence"][0]["text"])


def test_a_store_changes_between_models_of_any_dimension(tmp_path: Path) -> None:
    home, bert, bag = tmp_path / "home", bert_model(tmp_path / "bert", 96), bag_model(tmp_path / "bag", 768)
    home.mkdir()
    use(home, bert, "dimension = 96")
    night(home, tmp_path, 1)
    assert dimensions(home) == {96}
    for number, (model, dimension) in enumerate([(None, PACKAGED), (bag, 768)], start=2):
        if model is None:
            (home / "memstate.toml").unlink()
        else:
            use(home, model)
        assert asked(home) == f"{TURNS[0]} (1)", "what is served keeps its model"
        counts = night(home, tmp_path, number)
        assert dimensions(home) == {dimension}
        assert counts["topics_embedded"] > number, "those of earlier nights too"
        assert asked(home) == f"{TURNS[0]} (1)"
        assert run_memstate(home, "verify").code == 0
    shutil.rmtree(home / "cache")
    assert run_memstate(home, "rebuild").code == 0
    assert (dimensions(home), run_memstate(home, "verify").code) == ({768}, 0)

    before = served(*_served(home))
    use(home, bag, "dimension = 384")
    refused = run_memstate(home, "maintain", "--now", NIGHT)
    assert refused.code == 1
    assert "of 768 dimensions, expected 384 as in embedding.dimension of the settings" in refused.stderr
    shutil.rmtree(bag)
    shutil.copytree(bert, bag)
    use(home, bag)
    refused = run_memstate(home, "query", "Which boat lies at the quay?")
    assert refused.code == 1
    assert "of 96 dimensions, expected 768 as in" in refused.stderr
    assert "give the new one a name of its own" in refused.stderr
    assert [each.name for each in served(*_served(home))] == [each.name for each in before]


def _served(home: Path) -> tuple:
    store = open_store(home, {})
    return store.home, store.shards
