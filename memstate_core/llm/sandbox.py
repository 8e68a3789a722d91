"""The first phase: extracts the topics of one session into a sandbox.

A short session is one conversation, whose prompt contains the nearest known topics. A long one is read in chunks; the
prompt of each contains the titles so far and the preceding turns, and topics of equal normalised title are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.llm import prompts
from memstate_core.llm.conversation import converse
from memstate_core.llm.fair_queue import Requests
from memstate_core.llm.known_topics import Card
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.prompts import UNDERSTAND, Message
from memstate_core.llm.schema import TOPICS
from memstate_core.llm.sessions import Session, chunks, shown
from memstate_core.llm.validation import Found, Validator
from memstate_core.model.text import normalised
from memstate_core.policy.sections.extractor import ExtractorSettings

_KNOWN = "Known topics"
_SO_FAR = "Topics of this conversation so far (take exactly the same title to go on with one)"
_BEFORE = "Turns before these, for understanding only"
_TURNS = "Turns"


@dataclass
class SandboxTopic:
    """A topic of a session: its parts from the session's chunks, in order."""

    parts: list[Found]

    @property
    def first(self) -> Found:
        """The part that names and describes it."""
        return self.parts[0]

    @property
    def turns(self) -> list[int]:
        """Positions in the session of all its turns, ascending."""
        return sorted(turn for part in self.parts for turn in part.turns)


@dataclass
class Sandbox:
    """The result of the first phase for a session.

    Attributes:
        session: the session.
        long: whether it was read in chunks.
        cards: the known topics in the prompt: of a short session's only request, of a long one's second phase.
        topics: the extracted topics.
        failures: why chunks were not or not completely extracted.
        refusals: objects of answers that failed validation.
    """

    session: Session
    long: bool
    cards: list[Card]
    topics: list[SandboxTopic] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def is_long(session: Session, settings: ExtractorSettings) -> bool:
    """Whether a session is extracted in two phases."""
    return session.characters >= settings.chunk_threshold_chars


def study(client: ModelClient, sandbox: Sandbox, settings: ExtractorSettings, longest: int) -> Requests:
    """Extracts the topics of one session.

    Args:
        client: the model.
        sandbox: of the session, without topics; receives them, the failures and the refusals.
        settings: lengths and rounds.
        longest: the most bytes of a topic.

    Yields:
        The shape of an answer, before each request.
    """
    session = sandbox.session
    validator = Validator(session.scope, longest)
    whole = [range(len(session.turns))]
    for part in chunks(session, settings.chunk_threshold_chars) if sandbox.long else whole:
        rounds = settings.max_rounds_per_chunk if sandbox.long else settings.max_rounds
        question = _question(sandbox, part, settings)
        outcome = yield from converse(client, session.scope, question, TOPICS, rounds, _rest(part))
        _merge(sandbox.topics, validator.found(outcome.objects, part))
        for text in outcome.malformed:
            validator.malformed(text)
        if outcome.failure is not None:
            sandbox.failures.append(outcome.failure)
    sandbox.refusals = validator.refusals


def normal(title: str) -> str:
    """A title in the form in which titles are compared."""
    return str(pl.select(normalised(pl.lit(title, pl.String))).item())


def _question(sandbox: Sandbox, part: range, settings: ExtractorSettings) -> list[Message]:
    turns = sandbox.session.turns
    so_far = [{"title": topic.first.title, "summary": topic.first.summary} for topic in sandbox.topics]
    before = turns[max(0, part.start - settings.intent_turns) : part.start]
    return prompts.asked(
        UNDERSTAND,
        [
            (_KNOWN, [card.shown() for card in sandbox.cards]),
            (_SO_FAR, so_far),
            (_BEFORE, shown(before)),
            (_TURNS, shown(turns[part.start : part.stop], 1)),
        ],
    )


def _rest(part: range) -> Any:
    """Prompts for the turns that no object of a truncated answer refers to."""

    def rest(objects: Sequence[Any]) -> str | None:
        named = {number for one in objects if isinstance(one, dict) for number in _numbers(one.get("turns"))}
        missing = [number for number in range(1, len(part) + 1) if number not in named]
        return prompts.rest(missing) if missing else None

    return rest


def _numbers(turns: Any) -> Iterable[int]:
    return (turn for turn in turns if isinstance(turn, int)) if isinstance(turns, list) else ()


def _merge(topics: list[SandboxTopic], found: Iterable[Found]) -> None:
    """Adds topics to a sandbox; one whose title is there already becomes a further part of that topic."""
    titles = {normal(topic.first.title): topic for topic in topics}
    for one in found:
        name = normal(one.title)
        there = titles.get(name) or titles.get(normal(one.extends or ""))
        if there is None:
            titles[name] = there = SandboxTopic([])
            topics.append(there)
        there.parts.append(one)
