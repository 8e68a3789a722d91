"""Reads the chats of `chats/`: one story of six weeks between two friends, written in four languages for this purpose.

    J = Jane                            the name of a speaker
    + 2025-03-03T07:30                  a session; its turns follow each other by two minutes
    J(tooth): ...                       a turn; the label marks what questions refer to
    ?                                   the questions follow
    several: brake client: Why ...      its category, the labels of the turns that answer it, its text

The files have the same turns and questions in the same order, so that languages can be compared: each says it as its
speakers would, not word by word. Questions avoid the words of the answer where they can. Those of the category `date`
name a time that no turn contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "chats"
LANGUAGES = ("en", "de", "pt", "zh")
ASKED_AT = datetime(2025, 4, 11, 12, tzinfo=UTC)
"""When the questions are asked, a Friday: relative dates refer to it."""

STEP = timedelta(minutes=2)
_SPEAKER = re.compile(r"(?P<letter>\w) = (?P<name>.+)")
_TURN = re.compile(r"(?P<letter>\w)(?:\((?P<label>\w+)\))?: (?P<text>.+)")
_QUESTION = re.compile(r"(?P<category>one|several|date): (?P<labels>[\w ]+): (?P<text>.+)")


@dataclass
class Chat:
    """One language.

    Attributes:
        language: its code, and the id of the scope.
        turns: observations.
        questions: `question`, `category`, `scope` and `evidence`, the ids of the turns that answer it.
    """

    language: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)


def chat(language: str) -> Chat:
    """The chat in a language.

    Raises:
        ValueError: a line has another form.
        KeyError: a question names a label that no turn has.
    """
    turns, _, questions = (FOLDER / f"{language}.txt").read_text(encoding="utf-8").partition("\n?\n")
    read = list(_turns(language, turns.splitlines()))
    ids = {label: turn["observation_id"] for label, turn in read if label}
    scope = {"type": "user", "id": language}
    asked = [_question(line, ids) | {"scope": scope} for line in questions.splitlines()]
    return Chat(language, [turn | {"scope": scope} for _, turn in read], asked)


def _turns(language: str, lines: list[str]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    names, session, at, number = {}, "", ASKED_AT, 0
    for line in filter(None, lines):
        if speaker := _SPEAKER.fullmatch(line):
            names[speaker["letter"]] = speaker["name"]
        elif line.startswith("+ "):
            session, at, number = line[2:], datetime.fromisoformat(line[2:]).replace(tzinfo=UTC), 0
        else:
            found = _matched(_TURN, line)
            number, at = number + 1, at + STEP
            yield (
                found["label"],
                {
                    "observation_id": f"{language}/{session}/{number}",
                    "kind": "user_message",
                    "actor": names[found["letter"]],
                    "session_id": f"{language}/{session}",
                    "turn": number,
                    "observed_at": at.isoformat(),
                    "text": found["text"],
                },
            )


def _question(line: str, ids: dict[str, str]) -> dict[str, Any]:
    found = _matched(_QUESTION, line)
    evidence = [ids[label] for label in found["labels"].split()]
    return {"question": found["text"], "category": found["category"], "evidence": evidence}


def _matched(form: re.Pattern[str], line: str) -> re.Match[str]:
    found = form.fullmatch(line)
    if found is None:
        raise ValueError(f"found the line {line!r}; expected the form {form.pattern}")
    return found
