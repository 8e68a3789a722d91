"""The benchmark of a large store, on a small one: its questions and its night, without the load."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import served

pytestmark = pytest.mark.slow


def test_questions_are_about_topics_of_all_shards_and_the_night_publishes_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    script = import_module("large_store")
    import_module("changed_nights").made(tmp_path, 40, 8, 2)
    store = open_store(tmp_path)
    script.serving.write_questions(tmp_path, tmp_path / "questions.jsonl", 200, 7)
    asked = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert len(asked) == 200
    assert {store.layout.of(question["scope"]) for question in asked} == {*store.shards}
    before = served(store.home, store.shards)
    assert script.night(store, 60, 20, 4, 7).startswith("60 rows, 2 shards published in ")
    after = served(store.home, store.shards)
    rows = [sum(each.manifest.counts["evidence"] for each in shards) for shards in (before, after)]
    assert rows[1] > rows[0]
    assert after[0].manifest.now > before[0].manifest.now
