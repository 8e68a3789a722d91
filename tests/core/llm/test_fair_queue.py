"""Scopes take turns with their requests: nobody's rows keep another scope from its share of the budget."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.llm.fair_queue import AHEAD, Dialogue, Requests, next_turn
from memstate_core.llm.schema import TOPICS
from memstate_core.remote.budget import Budget

Sizes = dict[str, list[tuple[int, int]]]
"""By scope, the number of requests and the tokens of each for every session."""


def granted(sizes: Sizes, budget: Budget, order: list[str]) -> Counter[str]:
    """The requests that each scope could send, in turns, before the budget was used up."""
    sent: Counter[str] = Counter()

    def requests(scope: str, count: int, tokens: int) -> Requests:
        for _ in range(count):
            yield TOPICS
            if budget.take(scope) is None:
                budget.spend(scope, tokens)
                sent[scope] += 1

    live = [Dialogue(scope, requests(scope, *size)) for scope in order for size in sizes[scope]]
    while live := [one for one in live if one.next is not None]:
        turn = next_turn(live, budget.used)
        assert turn, "nobody's turn"
        for one in turn:
            one.advance()
    return sent


SESSIONS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3000)), min_size=1, max_size=6)


@given(
    own=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 1000)), min_size=1, max_size=4),
    others=st.lists(SESSIONS, max_size=3),
    first=st.booleans(),
)
def test_a_scope_within_its_equal_share_is_never_refused(
    own: list[tuple[int, int]], others: list[list[tuple[int, int]]], first: bool
) -> None:
    """The budget is what it needs for each scope, and what a scope may be ahead: here a request costs at most three."""
    names = [f"other-{at}" for at in range(len(others))]
    needed = max(sum(count for count, _ in own), sum(count * tokens for count, tokens in own) / 1000)
    requests = int((1 + len(others)) * (needed + 4 * AHEAD)) + 1
    budget = Budget(requests, 1000 * requests)
    order = ["own", *names] if first else [*names, "own"]
    sent = granted({"own": own} | dict(zip(names, others, strict=True)), budget, order)
    assert sent["own"] == sum(count for count, _ in own)


def test_the_first_requests_go_round_the_scopes_and_one_that_is_ahead_waits() -> None:
    budget = Budget(100, 100_000)
    live = [Dialogue(scope, iter_of(5)) for scope in ("big", "big", "big", "small")]
    assert [one.scope for one in next_turn(live, budget.used)] == ["big", "small", "big", "big"]
    for _ in range(AHEAD):
        budget.take("big")
    assert [one.scope for one in next_turn(live, budget.used)] == ["small"]
    budget.take("small")
    assert [one.scope for one in next_turn(live, budget.used)] == ["small", "big"]
    budget.spend("small", 20_000)
    assert [one.scope for one in next_turn(live, budget.used)] == ["big", "big", "big"]


def iter_of(count: int) -> Requests:
    yield from (TOPICS for _ in range(count))


@pytest.mark.parametrize(("requests", "tokens", "used"), [(3, 0, 3.0), (3, 50, 5.0), (0, 0, 0.0)])
def test_what_a_scope_used_is_the_larger_share_in_requests(requests: int, tokens: int, used: float) -> None:
    budget = Budget(100, 1000)
    for _ in islice(iter_of(9), requests):
        budget.take("a")
    budget.spend("a", tokens)
    budget.spend("b", 900)
    assert budget.used("a") == used
