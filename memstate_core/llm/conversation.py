"""One conversation with the model: a request and, if needed, requests for repair and for the rest of the answer.

The number of requests is limited; objects decoded before a failure are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
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
"""Maps the objects so far to a prompt for the rest, or None if nothing is missing."""


@dataclass
class Outcome:
    """The result of a conversation.

    Attributes:
        objects: the objects of all answers, in order, not yet validated.
        failure: why the result is incomplete; None if the last answer was complete.
        malformed: the texts of answers without any object.
    """

    objects: list[Any] = field(default_factory=list)
    failure: str | None = None
    malformed: list[str] = field(default_factory=list)


def converse(
    client: ModelClient, scope: str, messages: Sequence[Message], shape: Shape, rounds: int, rest: Rest
) -> Generator[Shape, None, Outcome]:
    """Sends requests until the answer is complete, the rounds are used up, or there is no answer.

    Args:
        client: the model.
        scope: the scope that the conversation is about.
        messages: the first request.
        shape: the shape of an answer.
        rounds: the most requests.
        rest: the prompt for the rest of a truncated answer.

    Yields:
        The shape, before each request.
    """
    outcome, current = Outcome(), list(messages)
    for _ in range(rounds):
        yield shape
        try:
            reply = client.ask(current, shape, scope)
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
    asked = "1 request" if rounds == 1 else f"{rounds} requests"
    outcome.failure = outcome.failure or f"the answer was not whole after {asked}"
    return outcome


def _mended(messages: Sequence[Message], text: str, truncated: bool) -> list[Message]:
    """The request again: for a shorter answer if it was truncated, else for one of the right shape."""
    if truncated:
        last = messages[-1]
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{LESS}"}]
    return followed_up(messages, text[:_QUOTED], REPAIR)


def _encodable(objects: list[Any]) -> list[Any]:
    return [one for one in objects if isinstance(one, dict)]
