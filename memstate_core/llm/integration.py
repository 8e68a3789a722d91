"""The second phase: which known topic each topic of a session extends, by the model's choice.

The model may choose among the topics that it was shown, and among no others. What it does not choose is left to
placement by similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from memstate_core.ingest.reasons import shortened
from memstate_core.llm import prompts
from memstate_core.llm.conversation import converse
from memstate_core.llm.known_topics import Card
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.prompts import INTEGRATE
from memstate_core.llm.sandbox import Sandbox, normal
from memstate_core.llm.schema import PLACEMENTS, AnswerPlacement

_LONGEST_WHY = 200


class Choice(NamedTuple):
    """The known topic that a topic extends, and the model's reason."""

    card: Card
    why: str | None

    def reason(self) -> str:
        """The reason as it is recorded."""
        said = " ".join((self.why or "").split())
        because = f": {shortened(said, _LONGEST_WHY)}" if said else ""
        return f"the language model says that it continues {shortened(self.card.title, 100)!r}{because}"


def chosen_at_once(sandbox: Sandbox) -> dict[int, Choice]:
    """The choices of a short session, by position of its topic: they stand in its only answer."""
    choices = {}
    for at, topic in enumerate(sandbox.topics):
        card = _card(sandbox.cards, topic.first.extends)
        if card is not None:
            choices[at] = Choice(card, topic.first.why)
    return choices


def integrate(client: ModelClient, sandbox: Sandbox, rounds: int) -> dict[int, Choice]:
    """Asks about the topics of a long session; a failure is added to the sandbox and leaves them unchosen."""
    rows = [
        {"topic": number, "title": topic.first.title, "summary": topic.first.summary}
        for number, topic in enumerate(sandbox.topics, 1)
    ]
    parts = [("Known topics", [card.shown() for card in sandbox.cards]), ("New topics", rows)]
    outcome = converse(client, prompts.asked(INTEGRATE, parts), PLACEMENTS, rounds, lambda _: None)
    if outcome.failure is not None:
        sandbox.failures.append(outcome.failure)
    choices: dict[int, Choice] = {}
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
    """The card of a handle or title."""
    if not name or not name.strip():
        return None
    return next((card for card in cards if card.handle == name.strip() or normal(card.title) == normal(name)), None)


def card_id(cards: Sequence[Card], name: str) -> str | None:
    """The id of the shown topic that a handle or title names."""
    card = _card(cards, name)
    return None if card is None else card.topic_id
