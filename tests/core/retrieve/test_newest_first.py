"""Statements that a later one may have replaced give it their place, where a question asks for what holds now."""

from __future__ import annotations

import pytest

from tests.core.retrieve.asking import ask, said
from tests.core.retrieve.conftest import day

pytestmark = pytest.mark.slow


def moved(store) -> tuple[str, str]:
    """A person who moves, and others who live elsewhere; answers the earlier and the later turn."""
    store.topic("chat", title="Chat")
    live = store.says("chat", "I live in Oslo live in Oslo town", actor="Ines", session_id="a", turn=1, on=1)
    store.says("chat", "I live in Rome, in Rome", actor="Bo", session_id="b", turn=1, on=90)
    later = store.says("chat", "We moved, I live in Bergen now", actor="Ines", session_id="c", turn=1, on=60)
    return live, later


def test_what_holds_now_comes_before_what_it_replaced(store, opened):
    before, now = moved(store)
    readers = opened(store)
    found = ask(readers, "In which town does Ines live?", store, evidence_k=3, explain=True)
    assert said(found)[:2] == [now, before]
    gains = {entry["observation_id"]: entry["explain"]["parts"]["newer"] for entry in found["evidence"]}
    assert gains[now] == -gains[before] > 0
    assert said(ask(readers, "In which town does Ines live?", store, evidence_k=1)) == [now]
    assert said(ask(readers, "In which town did Ines live before?", store, evidence_k=3))[0] == before
    then = ask(readers, "In which town does Ines live?", store, evidence_k=3, as_of=day(30))
    assert said(then)[0] == before


def replaced(found: dict) -> dict[str, str]:
    return {hit["observation_id"]: hit["replaced_by"] for hit in found["evidence"] if "replaced_by" in hit}


def test_evidence_names_the_later_statement_that_may_have_replaced_it(store, opened):
    store.topic("chat", title="Chat")
    before = store.says("chat", "I live in Oslo town", actor="Ines", session_id="a", turn=1, on=1)
    now = store.says("chat", "I live in Bergen town now", actor="Ines", session_id="c", turn=1, on=60)
    store.says("chat", "I live in Rome town", actor="Bo", session_id="b", turn=1, on=2)
    readers = opened(store)
    assert replaced(ask(readers, "In which town does Ines live?", store, evidence_k=3)) == {before: now}
    assert replaced(ask(readers, "In which town did Ines live before?", store, evidence_k=3)) == {}
    assert replaced(ask(readers, "In which town does Ines live?", store, stages=frozenset({"semantic"}))) == {}
    assert replaced(ask(readers, "In which town does Ines live?", store, as_of=day(30))) == {}


def test_a_later_statement_without_a_word_of_change_is_named_by_none(store, opened):
    store.topic("chat", title="Chat")
    for at, town in enumerate(("Oslo", "Bergen")):
        store.says("chat", f"I live in {town} town", actor="Ines", session_id=town, turn=1, on=at)
    assert replaced(ask(opened(store), "In which town does Ines live?", store)) == {}


def test_a_turn_that_states_and_asks_is_a_statement(store, opened):
    store.topic("chat", title="Chat")
    before = store.says("chat", "I live in Oslo live in Oslo town", actor="Ines", session_id="a", turn=1, on=1)
    now = store.says("chat", "We moved, I live in Bergen now. And you?", actor="Ines", session_id="c", turn=1, on=60)
    assert said(ask(opened(store), "In which town does Ines live?", store))[:2] == [now, before]


def test_statements_without_vectors_replace_nothing(store, opened):
    store.topic("chat", title="Chat")
    for day_of, text in enumerate(("I live in Oslo town", "I live in Bergen town now")):
        store.says("chat", text, actor="Ines", session_id="a", turn=day_of, on=day_of, embed=False)
    found = ask(opened(store), "In which town does Ines live?", store, explain=True)
    assert [entry["explain"]["parts"]["newer"] for entry in found["evidence"]] == [0, 0]


def test_what_follows_in_the_same_session_replaces_nothing(store, opened):
    store.topic("chat", title="Chat")
    for turn, text in enumerate(("I live in Oslo live in Oslo town", "Now I live in Bergen town")):
        store.says("chat", text, actor="Ines", session_id="a", turn=turn, on=turn)
    found = ask(opened(store), "In which town does Ines live?", store, explain=True)
    assert [entry["explain"]["parts"]["newer"] for entry in found["evidence"]] == [0, 0]
    assert replaced(found) == {}


def beneath(store, noise: str, count: int = 10) -> tuple[str, str]:
    """An answer, a later statement that takes it back far from the question, and earlier turns that rank between."""
    store.topic("chat", title="Chat")
    for at in range(count):
        store.says("chat", noise + "!" * at, actor="Ines", session_id="n", turn=at)
    old = store.says(
        "chat", "I own this dwelling and address, Oslo harbour", actor="Ines", session_id="a", turn=1, on=1
    )
    for at in range(12):
        store.says("chat", noise + "?!" * at, actor="Ines", session_id="m", turn=at, on=30)
    new = store.says("chat", "Sold, Oslo harbour", actor="Ines", session_id="z", turn=1, on=60)
    return old, new


def test_a_later_statement_comes_up_where_the_last_place_is_worth_little(store, opened):
    old, new = beneath(store, "Yesterday somebody repainted seventeen warehouses beside those long canals")
    readers = opened(store)
    found = ask(readers, "Which dwelling and address does Ines own?", store, evidence_k=30)["evidence"]
    assert [hit["observation_id"] for hit in found[:2]] == [new, old]
    assert found[1]["replaced_by"] == new
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    assert new not in said(ask(readers, "Which dwelling and address did Ines own?", store, evidence_k=5))


@pytest.mark.parametrize(("noise", "first"), [(6, 0), (20, 1)])
def test_nothing_is_exchanged_among_a_few_turns_without_a_word_of_change(store, opened, noise, first):
    """The nearest of a few turns may be about anything."""
    store.topic("chat", title="Chat")
    for at in range(noise):
        store.says("chat", f"Yesterday somebody repainted warehouse {at}", actor="Ines", session_id="n", turn=at)
    texts = ("I own this dwelling and address", "This dwelling leaks")
    owns = [store.says("chat", text, actor="Ines", session_id=text, turn=1, on=60) for text in texts]
    found = ask(opened(store), "Which dwelling and address does Ines own?", store, explain=True)["evidence"]
    assert found[0]["observation_id"] == owns[first]
    assert ({hit["explain"]["parts"]["newer"] for hit in found} == {0}) == (first == 0)


def test_nothing_comes_up_where_the_last_place_is_worth_much(store, opened):
    _, new = beneath(store, "my dwelling and address")
    assert new not in said(ask(opened(store), "Which dwelling and address does Ines own?", store, evidence_k=5))


def test_others_questions_and_unlike_turns_replace_nothing(store, opened):
    before, now = moved(store)
    store.says("chat", "Do I live in Oslo town now, changed?", actor="Ines", session_id="d", turn=1, on=70)
    store.says("chat", "I live in Oslo town", actor="Cleo", session_id="e", turn=1, on=80)
    store.says("chat", "Everything is new", actor="Ines", session_id="f", turn=1, on=85)
    found = ask(opened(store), "In which town does Ines live?", store, evidence_k=6, explain=True)
    gains = {entry["observation_id"]: entry["explain"]["parts"]["newer"] for entry in found["evidence"]}
    assert {name for name, gain in gains.items() if gain} == {before, now}
