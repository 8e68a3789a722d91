"""One conversation with the model: a question, and where needed its repair and the rest of a broken answer.

At most so many requests as it has rounds. What was understood before a failure is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import json as msgjson

from memstate_core.llm.decoding import decode
from memstate_core.llm.model_client import ModelClient, NoAnswer
from memstate_core.llm.prompts import LESS, REPAIR, Message, followed_up
from memstate_core.llm.schema import Shape

MALFORMED = "the answer was malformed, also when it was asked for again"
_QUOTED = 2000
_REPAIRS = 1

Rest = Callable[[list[Any]], str | None]
"""From the objects so far to the words that ask for the rest, or None where nothing is missing."""


@dataclass
class Outcome:
    """What a conversation came to.

    Attributes:
        objects: the objects of all answers, in their order, not yet validated.
        failure: why there are not more; None when the last answer was whole.
        malformed: the texts of answers in which nothing could be read.
    """

    objects: list[Any] = field(default_factory=list)
    failure: str | None = None
    malformed: list[str] = field(default_factory=list)


def converse(client: ModelClient, messages: Sequence[Message], shape: Shape, rounds: int, rest: Rest) -> Outcome:
    """Asks until the answer is whole, the rounds are over, or nothing more comes.

    Args:
        client: asks.
        messages: the first request.
        shape: the shape of an answer.
        rounds: the most requests.
        rest: how to ask for the rest of an answer that broke off.
    """
    outcome, current = Outcome(), list(messages)
    for _ in range(rounds):
        try:
            reply = client.ask(current, shape)
        except NoAnswer as nothing:
            outcome.failure = str(nothing)
            return outcome
        decoded = decode(reply.text, shape.items)
        fresh = [one for one in decoded.objects if one not in outcome.objects]
        outcome.objects += fresh
        if decoded.whole:
            outcome.failure = None
            return outcome
        if fresh:
            then = rest(outcome.objects)
            if then is None:
                return outcome
            current = followed_up(messages, msgjson.encode({shape.items: _encodable(outcome.objects)}).decode(), then)
        else:
            outcome.malformed.append(reply.text)
            outcome.failure = MALFORMED
            if len(outcome.malformed) > _REPAIRS:
                return outcome
            current = _mended(messages, reply.text, reply.truncated)
    outcome.failure = outcome.failure or f"the answer was not whole after {rounds} request(s)"
    return outcome


def _mended(messages: Sequence[Message], text: str, truncated: bool) -> list[Message]:
    """The request again: for less if the answer was too long, for the right shape if it had another."""
    if truncated:
        last = messages[-1]
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{LESS}"}]
    return followed_up(messages, text[:_QUOTED], REPAIR)


def _encodable(objects: list[Any]) -> list[Any]:
    return [one for one in objects if isinstance(one, dict)]
