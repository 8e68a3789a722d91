"""`memstate reembed`: to another model and back, killed in between, with the recall of questions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memstate_core.retrieve.evaluation.recorded_questions import QuestionRecorder
from memstate_core.retrieve.query import Question
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import open_store
from memstate_core.state.current import served
from memstate_core.state.graph import TOPIC, VECTOR
from tests.core.llm.scripted import Request, Response, serving
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate
from tests.pipeline.test_endpoint_encoder import DIMENSION, of_words
from tests.pipeline.test_models import TURNS, dimensions, dump

pytestmark = pytest.mark.slow
LATER = "2026-04-07T02:00:00Z"
FILE = """# mine
[embedding]
query_prefix = "q: "  # as the card says
dimension = 384
batch_size = 1
[policy]
max_active_topics = 1
topic_count_soft_limit = 1
"""


def done(home: Path, *arguments: str) -> dict[str, Any]:
    answer = run_memstate(home, *arguments, "--json")
    assert answer.code == 0, answer.stderr
    return dict(answer.document)


def models(home: Path) -> tuple[set[str], set[str]]:
    """The models of the vectors of active and of archived topics."""
    store = open_store(home, {})
    (snapshot,) = served(store.home, store.shards)
    with SnapshotReader(snapshot) as reader:
        topics = reader.graph.read(TOPIC, ["id", "state"]).join(reader.graph.read(VECTOR, ["id", "model"]), on="id")
    named = {state: set(topics.filter(state=state)["model"]) for state in ("active", "archived")}
    return named["active"], named["archived"]


def test_another_model_is_built_beside_the_served_one_and_switched_to_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT)
    done(home, "maintain", "--now", NIGHT)
    topic = done(home, "query", "Yard")["candidates"][0]["topic_id"]
    done(home, "pin", topic, "--now", NIGHT)
    (home / "memstate.toml").write_text(FILE)
    done(home, "maintain", "--now", LATER)
    status = done(home, "status")
    assert (status["topics"]["active"], status["topics"]["archived"]) == (1, 1)
    asked = tmp_path / "questions.jsonl"
    asked.write_text(f'{{"q": "Yard", "topics": ["{topic}"]}}\n\n{{"question": "Soup", "evidence": ["nothing"]}}\n')
    (old,), _ = models(home)

    arrived, reached = threading.Event(), threading.Event()

    def stalls(request: Request) -> Response:
        reached.set()
        arrived.wait(60)
        return of_words(request)

    with serving(of_words, of_words, stalls, of_words) as script:
        change = ["reembed", "--model", "words", "--endpoint", script.url, "--questions", str(asked)]
        command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), *change]
        process = subprocess.Popen(command, env=clean_environment(), stderr=subprocess.DEVNULL)
        assert reached.wait(60)
        process.kill()
        process.wait()
        arrived.set()
        assert (done(home, "status")["snapshot"], models(home)) == (status["snapshot"], ({old}, {old}))
        assert (home / "memstate.toml").read_text() == FILE

        tried = done(home, *change, "--dry-run")
        assert (tried["recall_before"], tried["recall_after"]) == (0.5, 0.5)
        assert (tried["encoded"], tried["from_cache"], tried["dimension"]) == (3, 2, DIMENSION)
        assert (done(home, "status")["snapshot"], (home / "memstate.toml").read_text()) == (status["snapshot"], FILE)

        changed = done(home, *change)
        assert (changed["published"], changed["encoded"], changed["from_cache"]) == (1, 0, 5)
        assert (changed["before"], changed["snapshot"]) == ([old], done(home, "status")["snapshot"])
        sent = [text for request in script.requests for text in request["input"] if text not in ("Yard", "Soup")]
        assert len(sent) == 6, "each text once, and again the one that was being embedded at the kill"
        (new,), archived = models(home)
        assert (json.loads(new)["model"], archived, dimensions(home)) == ("words", {new}, {DIMENSION})
        settings = (home / "memstate.toml").read_text()
        assert settings.startswith("# mine\n[embedding]\n")
        assert 'model = "words"' in settings
        assert "query_prefix" not in settings
        assert "dimension" not in settings
        assert done(home, "query", "Yard")["candidates"][0]["topic_id"] == topic
        assert run_memstate(home, "verify").code == 0
        done(home, "rebuild")
        again = done(home, *change)
        assert (again["published"], again["encoded"]) == (0, 0)
        night = done(home, "maintain", "--now", LATER)
        assert night["counts"].get("topics_embedded", 0) == 0
        assert done(home, "status")["embedding_model"] == new

    back = done(home, "reembed", "--back")
    assert (back["published"], back["encoded"], models(home)) == (1, 0, ({old}, {old}))
    assert run_memstate(home, "verify").code == 0
    assert 'query_prefix = "q: "' in (home / "memstate.toml").read_text()
    assert np.isclose(done(home, "query", TURNS[0])["candidates"][0]["similarity"], 0, atol=1)

    lines = {"{}": "line 1: found the keys none", "[1]": "line 1", "": "has no question"}
    for line, problem in lines.items():
        asked.write_text(line)
        refused = run_memstate(home, "reembed", "--back", "--questions", str(asked))
        assert (refused.code, problem in " ".join(refused.stderr.split())) == (2, True), refused.stderr
    refused = run_memstate(home, "reembed", "--back", MEMSTATE_EMBEDDING_MODEL="x")
    assert (refused.code, "unset it first" in refused.stderr) == (2, True)
    assert run_memstate(home, "reembed").code == 2


def test_without_a_file_the_questions_of_each_night_are_asked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT)
    done(home, "maintain", "--now", NIGHT)
    none = done(home, "reembed", "--model", "hashing", "--dry-run")
    assert (none["questions"], none["recorded"], "recall_before" in none) == (0, 0, False)
    assert "recall" not in run_memstate(home, "reembed", "--model", "hashing", "--dry-run").stdout

    (home / "memstate.toml").write_text('[recall]\nrecord = true\nsample = 1.0\nquestions = "mine.jsonl"\n')
    settings = open_store(home, {}).settings.recall
    recorder = QuestionRecorder(open_store(home, {}).home.recorded_questions, settings)
    for text in ("Yard", "Soup"):
        found = done(home, "query", text)
        assert recorder.record(Question(text), found, datetime.fromisoformat(NIGHT))
    topic = done(home, "query", "Yard")["candidates"][0]["topic_id"]
    (home / "mine.jsonl").write_text(f'{{"q": "Where is the yard?", "topics": ["{topic}"]}}\n')
    both = done(home, "reembed", "--model", "hashing", "--dry-run")
    assert (both["questions"], both["recorded"], both["recall_before"]) == (3, 2, 1.0)
    shown = run_memstate(home, "reembed", "--model", "hashing", "--dry-run").stdout
    assert "recall of 3 questions, 2 of them recorded: 100.0 per cent before, " in shown
    assert "answers on record are those of earlier models, which they favour; --questions FILE compares" in shown
    given = done(home, "reembed", "--model", "hashing", "--dry-run", "--questions", str(home / "mine.jsonl"))
    assert (given["questions"], given["recorded"]) == (1, 0)
    (home / "mine.jsonl").unlink()
    refused = run_memstate(home, "reembed", "--model", "hashing", "--dry-run")
    assert (refused.code, "recall.questions in memstate.toml" in refused.stderr) == (2, True)


def test_where_back_leads_is_said(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT)
    done(home, "maintain", "--now", NIGHT)
    to = run_memstate(home, "reembed", "--model", "hashing").stdout
    back = run_memstate(home, "reembed", "--back").stdout
    again = done(home, "reembed", "--back")
    assert "to go back: memstate reembed --back, to all-MiniLM-L6-v2" in to
    assert "to go back: memstate reembed --back, to hashing" in back
    assert (again["model"], again["back_to"]) == ("hashing", "all-MiniLM-L6-v2")
