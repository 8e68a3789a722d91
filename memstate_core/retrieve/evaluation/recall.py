"""Questions with what they should find, and how much of it an answer finds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memstate_core.embed.encoder import Encoder
from memstate_core.model.progress import tracked
from memstate_core.model.scope import parse_scope
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader

MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What a row that is no question raises."""


@dataclass(frozen=True)
class Expected:
    """A question, and what its answer should have.

    Attributes:
        text: the question.
        scopes: the scopes to search; None for all.
        topics: ids of topics.
        observations: ids of observations.
        asked_at: when it was asked; None for now.
        place: the file and line that have it.
    """

    text: str
    scopes: tuple[str, ...] | None
    topics: frozenset[str]
    observations: frozenset[str]
    asked_at: datetime | None = None
    place: str = field(default="", compare=False)


def read_questions(path: Path) -> list[Expected]:
    """The questions of a file, one JSON object a line.

    Keys: `q` (or `question`), `topics` or `observations` (or `evidence`) as lists of ids, `scope` (`type:id`, or an
    object with both) or `scopes` if not all are searched, and `at` if the question was asked at another time.

    Raises:
        ValueError: a line is something else; the message has its number, or the file has none.
        OSError: the file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        try:
            found += [parsed_question(json.loads(line), f"{path.name} line {number}")] if line.strip() else []
        except MALFORMED as error:
            wanted = '{"q": "…", "topics": ["…"], "observations": ["…"]} with at least one id'
            raise ValueError(f"{path}: line {number}: {error}; expected {wanted}") from None
    if not found:
        raise ValueError(f"{path} has no question")
    return found


def parsed_question(row: Mapping[str, Any], place: str) -> Expected:
    """A question as a file has it.

    Args:
        row: the object of its line; see `read_questions`.
        place: the file and line.

    Raises:
        One of `MALFORMED`: it is something else.
    """
    text, observations = row.get("q", row.get("question")), row.get("observations", row.get("evidence", []))
    lists = (row.get("topics", []), observations)
    if (
        not isinstance(text, str)
        or not text.strip()
        or not all(isinstance(each, list) for each in lists)
        or not any(lists)
    ):
        raise ValueError(f"found the keys {', '.join(row) or 'none'}")
    at = parse_moment(row["at"]) if "at" in row else None
    return Expected(text, _scopes(row), frozenset(map(str, lists[0])), frozenset(map(str, lists[1])), at, place)


def _scopes(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    scope = row.get("scope")
    named = f"{scope['type']}:{scope['id']}" if isinstance(scope, dict) else scope
    return tuple(map(parse_scope, row.get("scopes") or ([named] if named else []))) or None


def recall(readers: Sequence[SnapshotReader], encoder: Encoder, cache: Path, questions: Sequence[Expected]) -> float:
    """The mean share of the expected topics and observations among the first 8 topics and 10 pieces of evidence.

    Args:
        readers: the snapshots.
        encoder: the model by which they were embedded.
        cache: the embedding cache.
        questions: at least one question.

    Raises:
        ModelUnavailable: the model cannot be loaded.
    """
    asked = tracked(questions, "ask", len(questions), "questions")
    return sum(_found(readers, encoder, cache, each) for each in asked) / len(questions)


def _found(readers: Sequence[SnapshotReader], encoder: Encoder, cache: Path, expected: Expected) -> float:
    given = answer(readers, encoder, cache, Question(expected.text, expected.scopes, asked_at=expected.asked_at))
    return found_share(expected, given, topics=len(given["candidates"]), evidence=len(given["evidence"]))


def found_share(expected: Expected, given: Mapping[str, Any], *, topics: int, evidence: int) -> float:
    """The share of the expected topics and observations among the first of an answer.

    Args:
        expected: what it should find.
        given: the answer.
        topics: how many of its topics to look at.
        evidence: how many pieces of its evidence.
    """
    named = {each["topic_id"] for each in given["candidates"][:topics]}
    said = {each["observation_id"] for each in given["evidence"][:evidence]}
    hits = len(expected.topics & named) + len(expected.observations & said)
    return hits / (len(expected.topics) + len(expected.observations))
