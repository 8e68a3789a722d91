"""The gate on answers: a night that answers questions worse than what is served does not publish, and says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.text import parse_moment
from memstate_core.night import publish
from memstate_core.night.gates import measure
from memstate_core.night.gates.recall_loss import RecallLoss, recall_loss
from memstate_core.run.run import Run
from memstate_core.run.store import Store, open_store
from memstate_core.state.kept_tables import Rows
from memstate_core.state.snapshots import Snapshot
from memstate_pipeline.run import maintain
from tests.core.night.corrections import merge
from tests.pipeline.conftest import Answer, run_memstate

pytestmark = pytest.mark.slow

NIGHTS = [f"2026-04-{day:02}T02:00:00Z" for day in range(6, 12)]
TURNS = ["The boat is called Heron and lies at the east pier.", "The attic roof was mended with slate."]
ARCHIVING = """
[[policy.rules]]
name = "no boats"
on = "nightly"
when = "topic_kind == 'note'"
do = "archive"
"""


def observation(name: str, **more: Any) -> dict[str, Any]:
    row = {"topic_key": name, "title": name, "observed_at": "2026-01-01", "scope": {"type": "user", "id": "aya"}}
    return row | {"observation_id": f"o-{name}", "fields": [{"name": "what", "value": f"about {name}"}]} | more


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def night(home: Path, number: int, *options: str) -> Answer:
    return run_memstate(home, "maintain", "--now", NIGHTS[number], "--json", *options)


def recall(answer: Answer) -> dict[str, Any]:
    return next(check for check in answer.document["checks"] if check["name"] == "recall")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with one published night of a boat, which is a note, and an attic."""
    home = tmp_path / "home"
    dump = write(
        tmp_path / "dump.jsonl",
        observation("boat", text=TURNS[0], topic_kind="note"),
        observation("attic", text=TURNS[1]),
    )
    assert run_memstate(home, "import", str(dump)).code == 0
    assert night(home, 0).code == 0
    return home


def topic(home: Path, title: str) -> str:
    found = run_memstate(home, "query", title, "--json").document["candidates"]
    return next(each["topic_id"] for each in found if each["title"] == title)


def test_a_night_that_loses_answers_is_refused_until_it_is_accepted(home: Path) -> None:
    boat = topic(home, "boat")
    questions = write(
        home / "questions.jsonl",
        {"q": "What is the boat called?", "topics": [boat], "scope": "user:aya"},
        {"q": "How was the attic mended?", "observations": ["o-attic"], "scope": "user:aya"},
    )
    asks = f'[recall]\nquestions = "{questions.name}"\n'
    (home / "memstate.toml").write_text(asks)
    calm = night(home, 1)
    assert calm.code == 0, calm.stderr
    assert recall(calm)["passed"]
    assert recall(calm)["found"] == "recall of 2 questions 100.0 % in what is served, 100.0 % now"

    (home / "memstate.toml").write_text(asks + '[gates]\nshrinkage = "off"\n' + ARCHIVING)
    refused = night(home, 2)
    assert refused.code == 4, refused.stderr
    assert refused.document["error"]["refused"] == ["recall"]
    message = refused.document["error"]["message"]
    assert f"questions.jsonl line 1: topic {boat} was archived (forgetting)" in message
    assert "100.0 % in what is served, 50.0 % now" in message
    assert "What is the boat called" not in message
    assert run_memstate(home, "status", "--json").document["snapshot"] == "s0/2"

    accepted = night(home, 2, "--accept", "recall", "--why", "the boat was sold")
    assert accepted.code == 0, accepted.stderr
    assert run_memstate(home, "verify").code == 0
    after = night(home, 3)  # compared with what was accepted
    assert after.code == 0, after.stderr
    assert recall(after)["found"] == "recall of 2 questions 50.0 % in what is served, 50.0 % now"


@pytest.mark.usefixtures("no_settings")
def test_a_merged_topic_is_found_as_its_survivor(home: Path) -> None:
    boat = topic(home, "boat")
    attic = topic(home, "attic")
    write(home / "questions.jsonl", {"q": "What is the boat called?", "topics": [boat, attic]})
    (home / "memstate.toml").write_text('[recall]\nquestions = "questions.jsonl"\n')
    merge(open_store(home), boat, attic)
    merged = [each["topic_id"] for each in run_memstate(home, "query", "boat", "--json").document["candidates"]]
    assert len(merged) == 1
    done = night(home, 1)
    assert done.code == 0, done.stderr
    assert recall(done)["found"] == "recall of 1 question 100.0 % in what is served, 100.0 % now"


def test_questions_that_cannot_be_read_warn(home: Path) -> None:
    (home / "memstate.toml").write_text('[recall]\nquestions = "missing.jsonl"\n')
    done = night(home, 1)
    assert done.code == 0, done.stderr
    verdict = recall(done)
    assert (verdict["passed"], verdict["severity"]) == (False, "WARN")
    assert "missing.jsonl" in verdict["found"]


def test_recorded_questions_are_asked_and_erased(home: Path) -> None:
    """Recorded by a query that counts as an access; an erasure removes them all."""
    (home / "memstate.toml").write_text("[recall]\nrecord = true\nsample = 1.0\n")
    asked = "What is the boat called?"
    assert run_memstate(home, "query", asked, "--scope", "user:aya").code == 0
    assert not (home / "recall").exists()
    assert run_memstate(home, "query", asked, "--scope", "user:aya", "--record", "--now", NIGHTS[0]).code == 0
    done = night(home, 1)
    assert recall(done)["found"] == "recall of 1 question 100.0 % in what is served, 100.0 % now"
    quoting = [path for path in home.rglob("*") if path.is_file() and asked.encode() in path.read_bytes()]
    assert [path.parent.name for path in quoting] == ["recall"]
    erased = run_memstate(home, "erase", "--observation", "o-attic", "--why", "asked for", "--yes")
    assert erased.code == 0, erased.stderr
    assert not (home / "recall").exists()
    assert recall(night(home, 2))["found"] == "no questions"


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_draft_that_was_asked_is_published_if_it_is_whole(
    is_damaged: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def writing(store: Store, run: Run, folder: Path, tables: Rows) -> Snapshot:
        made = write_draft(store, run, folder, tables)
        written.append(made.path)
        return made

    def asking(store: Store, run: Run) -> RecallLoss:
        found = recall_loss(store, run)
        if is_damaged:
            with (written[0] / "aliases.parquet").open("ab") as file:
                file.write(b"0")
        return found

    write_draft = publish._written
    monkeypatch.setattr(publish, "_written", writing)
    monkeypatch.setattr(measure, "recall_loss", asking)
    write(home / "questions.jsonl", {"q": "What is the boat called?", "topics": [topic(home, "boat")]})
    (home / "memstate.toml").write_text('[recall]\nquestions = "questions.jsonl"\n')
    assert maintain(open_store(home), parse_moment(NIGHTS[1])).summary["snapshot"] == "s0/2"
    assert len(written) == 1 + is_damaged
    assert run_memstate(home, "verify").code == 0
