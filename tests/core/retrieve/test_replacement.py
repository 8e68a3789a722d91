"""How likely a later turn replaced an earlier one: which pairs count, and what makes one likelier than another."""

from __future__ import annotations

import numpy as np
import pytest

from memstate_core.retrieve.replacement import FURTHER, POOL, TRAITS, Pool, pool_of, traits
from tests.core.retrieve.conftest import Store

pytestmark = pytest.mark.slow

NOISE = "Yesterday somebody repainted seventeen warehouses beside those long canals"


def chat(store: Store, *later: str, noise: int = 24, **given: object) -> list[str]:
    """Small talk, a statement, and later turns, each in a session of its own; answers the ids of the statements."""
    store.topic("chat", title="Chat")
    for at in range(noise):
        store.says("chat", f"{NOISE} {at}", actor="Ines", session_id="noise", turn=at)
    texts = ("I live in Oslo harbour", *later)
    return [
        store.says("chat", text, **{"actor": "Ines", "session_id": f"s{at}", "turn": 1, "on": 10 + at} | given)
        for at, text in enumerate(texts)
    ]


def judged(store: Store, opened, first: int = 5) -> tuple[Pool, dict[str, int]]:
    """The pool where the statements stand before the small talk, in the order of time, and the place of each id."""
    [reader] = opened(store)
    evidence = reader.evidence("user:a")
    names = evidence.frame["observation_id"].to_list()
    scores = np.where(evidence.frame["session_id"] == "noise", 0.0, 3.0) - 0.01 * np.arange(len(names))
    all_rows = np.ones(len(names), dtype=np.bool_)
    pool = pool_of(evidence, scores, all_rows, ~all_rows, first)
    return pool, {names[row]: place for place, row in enumerate(pool.rows.tolist())}


def likely(store: Store, opened, old: str, new: str) -> float:
    pool, place = judged(store, opened)
    return float(pool.probability[place[old], place[new]])


def test_a_word_of_change_and_a_rare_word_make_a_replacement_likelier(store, opened) -> None:
    old, plain, moved, left = chat(store, "Bergen is rainy", "Bergen is home now", "I left Oslo harbour")
    pool, place = judged(store, opened)
    chances = [pool.probability[place[old], place[new]] for new in (plain, moved, left)]
    assert 0 < chances[0] < chances[1] < chances[2] < 1


def test_the_more_a_turn_of_change_shares_the_more_it_says(store, opened) -> None:
    statements = chat(store, "Oslo, never again", "Oslo harbour, never again", "Oslo harbour")
    [reader] = opened(store)
    evidence = reader.evidence("user:a")
    rows = np.array([evidence.frame["observation_id"].to_list().index(each) for each in statements])
    shared = traits(evidence, np.zeros(4), rows, 1)[0][0, :, [*TRAITS].index("names a change: weight of shared words")]
    assert shared[3] == 0 < shared[1] < shared[2]
    assert np.expm1(shared[2]) == pytest.approx(2 * np.expm1(shared[1]), rel=0.1)  # two words, about as rare


@pytest.mark.parametrize(
    "other", [{"actor": "Bo"}, {"session_id": "s0"}, {"on": 1}], ids=["speaker", "session", "time"]
)
def test_only_a_later_turn_of_the_same_speaker_in_another_session_replaces(store, opened, other) -> None:
    [old] = chat(store)
    own = {"actor": "Ines", "session_id": "later", "turn": 2, "on": 20}
    new = store.says("chat", "I left Oslo harbour", **own | other)
    assert likely(store, opened, old, new) == 0


def test_a_turn_that_only_asks_replaces_nothing(store, opened) -> None:
    old, new = chat(store, "Did I leave Oslo harbour, is it sold now?")
    assert likely(store, opened, old, new) == 0


def test_among_few_turns_only_a_near_one_with_a_word_of_change_replaces(store, opened) -> None:
    later = ("Oslo harbour is rainy", "New tyres today", "I left Oslo harbour")
    old, plain, far, left = chat(store, *later, noise=3)
    pool, place = judged(store, opened)
    chances = pool.probability[place[old]]
    assert chances[place[plain]] == chances[place[far]] == 0 < chances[place[left]]


def test_of_two_turns_that_state_values_only_histories_know(store, opened) -> None:
    old, new = chat(store, "I left Oslo harbour")
    [reader] = opened(store)
    evidence = reader.evidence("user:a")
    rows = [evidence.frame["observation_id"].to_list().index(each) for each in (old, new)]
    scores, seen = np.zeros(evidence.frame.height), np.ones(evidence.frame.height, dtype=np.bool_)
    scores[rows] = 3.0
    for stating, counts in (([], True), (rows[:1], True), (rows, False)):
        states = np.isin(np.arange(len(scores)), stating)
        assert bool(pool_of(evidence, scores, seen, states, 5).probability[0, 1] > 0) is counts


def test_what_names_the_same_and_a_change_is_compared_from_below_the_pool(store, opened) -> None:
    old, *_ = chat(store, noise=POOL + 10)
    left = store.says("chat", "Sold: Oslo", actor="Ines", session_id="z", turn=1, on=90)
    plain = store.says("chat", "Oslo", actor="Ines", session_id="y", turn=1, on=91)
    [reader] = opened(store)
    evidence = reader.evidence("user:a")
    names = evidence.frame["observation_id"].to_list()
    scores = np.where([name in (left, plain) for name in names], -1.0, 0.0) + [float(name == old) for name in names]
    seen = np.ones(len(names), dtype=np.bool_)
    pool = pool_of(evidence, scores, seen, ~seen, 5)
    assert [names[row] for row in pool.rows[POOL:].tolist()] == [left]
    assert POOL < len(pool.rows) <= POOL + FURTHER
    assert pool.probability[0, POOL] == pool.probability[0].max()
    seen[names.index(left)] = False
    assert len(pool_of(evidence, scores, seen, ~seen, 5).rows) == POOL


def test_an_empty_scope_has_an_empty_pool(store, opened) -> None:
    chat(store)
    [reader] = opened(store)
    evidence = reader.evidence("user:a")
    nothing = np.zeros(evidence.frame.height, dtype=np.bool_)
    pool = pool_of(evidence, np.zeros(len(nothing)), nothing, nothing, 5)
    assert pool.rows.shape == (0,)
    assert pool.probability.shape == (0, 0)
