"""Whose request is sent next: scopes take turns, so that they share the budget of a run fairly.

A dialogue is a generator that yields before each of its requests; advancing it sends that request. Invariant: a scope
that has used `AHEAD` requests (or their worth in tokens) more than another with a request to send waits for that one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from memstate_core.llm.schema import Shape

AHEAD = 8
"""Requests that a scope may be ahead of another, so that several sessions of one scope are read at the same time."""

Requests = Generator[Shape, None, None]


@dataclass
class Dialogue:
    """The requests for one session, in order.

    Attributes:
        scope: whose session it is.
        requests: yields the shape of the answer before each request.
        asked: the shape of the last answer.
        next: the shape of the next answer; None at the end.
    """

    scope: str
    requests: Requests
    asked: Shape | None = None
    next: Shape | None = field(init=False)

    def __post_init__(self) -> None:
        self.next = next(self.requests, None)

    def advance(self) -> None:
        """Sends the next request."""
        self.asked, self.next = self.next, next(self.requests, None)


def next_turn(dialogues: Sequence[Dialogue], used: Callable[[str], float]) -> list[Dialogue]:
    """The dialogues whose next request is sent now, those of the scopes that used least first.

    The order depends on what scopes used and on the order of the dialogues alone.

    Args:
        dialogues: those that have not ended, each scope's in its order.
        used: what a scope has used of the budget, in requests.
    """
    by_scope: dict[str, list[Dialogue]] = defaultdict(list)
    for dialogue in dialogues:
        by_scope[dialogue.scope].append(dialogue)
    shares = {scope: used(scope) for scope in by_scope}
    least = min(shares.values(), default=0.0)
    ranked = [(shares[scope] + rank, one) for scope, own in by_scope.items() for rank, one in enumerate(own)]
    allowed = [entry for entry in ranked if entry[0] < least + AHEAD]
    return [one for _, one in sorted(allowed, key=lambda entry: entry[0])]
