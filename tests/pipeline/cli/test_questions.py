"""Questions at the command line: blank ones, ids that two scopes share, marks of nothing, and times before a topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
ROWS = [
    {"observation_id": "a1", "text": "The ferry leaves at noon", "observed_at": "2026-01-01", "scope": AYA},
    {"observation_id": "a1", "text": "The ferry leaves at nine", "observed_at": "2026-01-02", "scope": BEN},
    {"observation_id": "a2", "text": "The ferry is full", "observed_at": "2026-01-03", "scope": BEN},
    {"observation_id": "a3", "topic_key": "boat", "title": "Boat", "observed_at": "2026-02-01", "scope": AYA},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    (folder / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert run_memstate(folder / "home", "import", str(folder / "dump.jsonl")).code == 0
    assert run_memstate(folder / "home", "maintain", "--now", "2026-03-01T00:00:00Z").code == 0
    return folder / "home"


@pytest.mark.parametrize("text", ["", " \t"])
@pytest.mark.parametrize(
    "command", [("query",), ("context", "--budget", "100"), ("memory", "search"), ("memory", "context-pack")]
)
def test_a_blank_question_is_refused(home: Path, command: tuple[str, ...], text: str) -> None:
    refused = run_memstate(home, *command, text)
    assert refused.code == 2
    assert "found a blank question, expected words" in refused.stderr


def test_a_citation_has_its_scope_where_two_scopes_share_the_id(home: Path) -> None:
    def cited(*options: str) -> list[str]:
        lines = run_memstate(home, "context", "When does the ferry leave?", "--budget", "300", *options).stdout
        return sorted(line.partition("] ")[2] for line in lines.splitlines() if "] evidence " in line)

    assert cited() == ["evidence a1 of user:aya", "evidence a1 of user:ben", "evidence a2", "evidence a3"]
    assert cited("--scope", "user:ben") == ["evidence a1", "evidence a2"]
    options = ("--budget", "300", "--json")
    pack: dict[str, Any] = run_memstate(home, "context", "When does the ferry leave?", *options).document
    scopes = {each.get("scope") for each in pack["citations"] if each.get("observation_id") == "a1"}
    assert scopes == {"user:aya", "user:ben"}


def test_eval_warns_of_marks_that_nothing_has(home: Path, tmp_path: Path) -> None:
    marked = {"q": "When does the ferry leave?", "observations": ["a1", "a9"], "topics": ["nowhere"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(marked))
    done = run_memstate(home, "eval", str(tmp_path / "questions.jsonl"), "--json")
    assert done.code == 0
    assert [each["id"] for each in done.document["unknown"]] == ["observation a9", "topic nowhere"]
    assert "there is no observation a9 in snapshot s0/1; it counts as missed" in done.stderr


def test_a_topic_that_did_not_exist_yet_is_named_as_asked_with_its_beginning(home: Path) -> None:
    refused = run_memstate(home, "topic", "Boat", "--as-of", "2026-01-15")
    assert refused.code == 1
    assert refused.stderr.startswith("memstate: topic 'Boat' did not exist in snapshot s0/1 as of 2026-01-15")
    assert "it exists since 2026-02-01T00:00:00Z" in refused.stderr


def test_an_unknown_topic_names_the_next_step_of_the_command_line(home: Path) -> None:
    assert "`memstate export` lists every id." in run_memstate(home, "topic", "nowhere").stderr


def test_wrong_values_are_described_in_words(home: Path) -> None:
    refused = run_memstate(home, "query", "ferry", "--top-k", "0").stderr
    assert "Invalid value for '--top-k': expected a number greater than or equal to 1" in refused


def test_of_a_long_text_the_passage_with_the_words_of_the_question_is_shown(tmp_path: Path) -> None:
    """Its beginning was shown, whatever the question."""
    around = "A paragraph of the lease about other things. " * 40
    row = {"text": f"{around}The deposit is 2350 euros. {around}", "observed_at": "2026-01-01", "scope": AYA}
    (tmp_path / "dump.jsonl").write_text(json.dumps(row))
    home = tmp_path / "home"
    assert run_memstate(home, "import", str(tmp_path / "dump.jsonl")).code == 0
    assert run_memstate(home, "maintain", "--now", "2026-03-01T00:00:00Z").code == 0
    shown = run_memstate(home, "query", "What is the deposit?", "--scope", "user:aya").stdout
    assert "The deposit is 2350 euros." in shown.partition("evidence")[2]
    assert row["text"] in run_memstate(home, "query", "What is the deposit?", "--json").stdout
