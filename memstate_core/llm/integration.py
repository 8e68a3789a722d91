"""The second phase: the model chooses which known topic, if any, each topic of a session extends.

It can choose only among the topics in its prompt. Topics without a choice are placed by similarity.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import msgspec

from memstate_core.ingest.reasons import shortened
from memstate_core.llm import prompts
from memstate_core.llm.conversation import converse
from memstate_core.llm.known_topics import Card
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.prompts import INTEGRATE
from memstate_core.llm.sandbox import Sandbox, normal
from memstate_core.llm.schema import PLACEMENTS, AnswerPlacement, Shape

_LONGEST_WHY = 200


class Choice(NamedTuple):
    """The known topic that a topic extends, and the model's reason."""

    card: Card
    why: str | None

    def reason(self) -> str:
        """The reason, as recorded with the placement."""
        why = " ".join((self.why or "").split())
        because = f": {shortened(why, _LONGEST_WHY)}" if why else ""
        return f"the language model says that it continues {shortened(self.card.title, 100)!r}{because}"


Choices = dict[int, Choice]
"""The choices for a session, by position of its topic."""


def chosen_at_once(sandbox: Sandbox) -> Choices:
    """The choices of a short session, by position of its topic; its only answer contains them."""
    choices = {}
    for at, topic in enumerate(sandbox.topics):
        card = _card(sandbox.cards, topic.first.extends)
        if card is not None:
            choices[at] = Choice(card, topic.first.why)
    return choices


def integrate(client: ModelClient, sandbox: Sandbox, rounds: int) -> Generator[Shape, None, Choices]:
    """Requests the choices for a long session; a failure is added to the sandbox, and topics stay without a choice.

    Yields:
        The shape of an answer, before each request.
    """
    rows = [
        {"topic": number, "title": topic.first.title, "summary": topic.first.summary}
        for number, topic in enumerate(sandbox.topics, 1)
    ]
    parts = [("Known topics", [card.shown() for card in sandbox.cards]), ("New topics", rows)]
    asked = prompts.asked(INTEGRATE, parts)
    outcome = yield from converse(client, sandbox.session.scope, asked, PLACEMENTS, rounds, lambda _: None)
    if outcome.failure is not None:
        sandbox.failures.append(outcome.failure)
    choices: Choices = {}
    for one in outcome.objects:
        try:
            answer = msgspec.convert(one, AnswerPlacement)
        except msgspec.ValidationError:
            continue
        card = _card(sandbox.cards, answer.extends)
        if card is not None and 1 <= answer.topic <= len(rows):
            choices.setdefault(answer.topic - 1, Choice(card, answer.why))
    return choices


def _card(cards: Sequence[Card], name: str | None) -> Card | None:
    """The card that a handle or title names, if any."""
    if not name or not name.strip():
        return None
    return next((card for card in cards if card.handle == name.strip() or normal(card.title) == normal(name)), None)


def card_id(cards: Sequence[Card], name: str) -> str | None:
    """The id of the topic of the prompt that a handle or title names, if any."""
    card = _card(cards, name)
    return None if card is None else card.topic_id
