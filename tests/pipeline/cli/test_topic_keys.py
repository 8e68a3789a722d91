"""Commands that take the id of a topic take the `topic_key` by which observations name it, too."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import NIGHT, fork_memstate, run_memstate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]

LATER = "2026-04-07T02:00:00Z"
COMMANDS = {
    "pin": (("pin",), ("--now", LATER)),
    "restore": (("restore",), ("--now", LATER)),
    "feedback": (("feedback",), ("--used", "--now", LATER)),
    "doctor": (("doctor", "--topic"), ("--now", LATER)),
    "query": (("query", "the boat", "--topic"), ()),
    "erase": (("erase", "--topic"), ("--dry-run",)),
}


def said(key: str, title: str, scope: str) -> dict[str, Any]:
    named = {"observation_id": f"{key}/{scope}", "topic_key": key, "title": title}
    return named | {"observed_at": "2026-04-05T00:00:00Z", "scope": {"type": "user", "id": scope}}


ROWS = [said("uniq", "Old Ferry Yard", "ines"), said("shared", "Boat", "ines"), said("shared", "Lake boat", "bo")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, no_settings: None) -> Path:
    """A home in which one key is of one scope, and another of two."""
    del no_settings
    folder = tmp_path_factory.mktemp("keys")
    (folder / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for command in (("import", str(folder / "dump.jsonl"), "--now", NIGHT), ("maintain", "--now", NIGHT)):
        assert run_memstate(folder / "home", *command).code == 0
    return folder / "home"


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "home"))


def topics(home: Path) -> dict[str, dict[str, Any]]:
    return {row["title"]: row for row in run_memstate(home, "export", "--json").document["topics"]}


@pytest.mark.parametrize(("before", "after"), COMMANDS.values(), ids=COMMANDS)
def test_a_key_of_one_topic_is_as_good_as_its_id(
    home: Path, tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    by_id = Path(shutil.copytree(home, tmp_path / "by-id"))
    one, other = (
        run_memstate(where, *before, name, *after, "--json")
        for where, name in ((home, "uniq"), (by_id, topics(home)["Old Ferry Yard"]["id"]))
    )
    assert (one.code, other.code) == (0, 0), one.stderr
    own = re.compile(r"(cli|correction)-[0-9a-f-]+|/by-id|/home")
    assert own.sub("", json.dumps(one.document)) == own.sub("", json.dumps(other.document))


@pytest.mark.parametrize(("before", "after"), COMMANDS.values(), ids=COMMANDS)
def test_a_key_of_several_topics_names_none(made: Path, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    answer = run_memstate(made, *before, "shared", *after, "--json")
    assert (answer.code, answer.document["error"]["type"]) == (1, "TopicAmbiguous")
    for title in ("Boat", "Lake boat"):
        topic = topics(made)[title]
        assert f"{topic['id']} in scope {topic['scope']}" in answer.stderr


@pytest.mark.parametrize(("before", "after"), COMMANDS.values(), ids=COMMANDS)
def test_a_key_of_no_topic_is_not_found(made: Path, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    answer = run_memstate(made, *before, "nothing", *after, "--json")
    assert answer.code == 1
    assert answer.document["error"]["type"] in ("TopicNotFound", "SubjectNotFound")


def test_the_scope_of_a_question_says_whose_topic_a_key_means(made: Path) -> None:
    answer = run_memstate(made, "query", "the boat", "--topic", "shared", "--scope", "user:bo", "--json")
    assert [each["title"] for each in answer.document["candidates"]] == ["Lake boat"]


def test_a_topic_is_erased_by_its_key(home: Path) -> None:
    answer = fork_memstate(home, "erase", "--topic", "uniq", "--json")
    assert answer.code == 0, answer.stderr
    assert answer.document["removed"]["evidence"] == 1
    assert topics(home).keys() == {"Boat", "Lake boat"}
    again = fork_memstate(home, "erase", "--topic", "uniq", "--json")
    assert again.document["error"]["type"] == "SubjectNotFound"
    assert "no topic has the id or topic_key 'uniq'" in again.stderr
