"""Which answers about suggested pairs are read from decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.revise.answers import answered, answers_of, waiting
from memstate_core.revise.matching.answers import KINDS
from memstate_core.revise.suggestions import drawn
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import suggestions
from tests.core.revise.nights import night, record
from tests.core.revise.test_verdicts import judged, ledger, merged, suggested, unmerged, withdrawn

FIELD = "field/within"


def asked(a: str, b: str, probability: float = 0.6, kind: str = FIELD) -> tuple[Any, ...]:
    decision, topic, payload = suggested(a, b)
    return decision, topic, payload | {"probability": probability, "pair_kind": kind}


def drawn_of(a: str, b: str) -> pl.Series:
    """What puts the pair in order."""
    return pl.select(a=pl.lit(a), b=pl.lit(b)).select(drawn()).to_series()


def rows(*decisions: tuple[Any, ...]) -> list[tuple[float, str, bool]]:
    return answered(ledger(*decisions)).select("probability", "pair_kind", "same").rows()


def test_an_answer_counts_with_the_pair_as_it_was_last_suggested() -> None:
    again = asked("a", "b", 0.8, "title/across")
    assert rows(asked("a", "b", 0.3), again, judged("a", "b", "different")) == [(0.8, "title/across", False)]


def test_an_answer_counts_after_the_merge_that_follows_from_it() -> None:
    assert rows(asked("a", "b"), judged("a", "b", "same"), merged("b", "a")) == [(0.6, FIELD, True)]


def test_a_skipped_pair_is_no_answer_but_one_of_a_sample() -> None:
    skipped = asked("a", "b"), judged("a", "b", "skip")
    said = answers_of(answered(ledger(*skipped)), None)
    assert (said.same.tolist(), said.sample.same.tolist()) == ([], [False])
    later = answers_of(answered(ledger(*skipped, judged("a", "b", "same"))), None)
    assert (later.same.tolist(), later.sample.same.tolist(), later.sample.at.tolist()) == ([True], [True], [2])


def test_pairs_without_a_known_kind_do_not_count() -> None:
    older = suggested("c", "d"), judged("c", "d", "same")
    unknown = asked("e", "f", kind="of a later version"), judged("e", "f", "same")
    assert rows(*older, *unknown, judged("g", "h", "same")) == []


def test_answers_have_the_number_of_their_kind() -> None:
    said = answers_of(answered(ledger(asked("a", "b"), judged("a", "b", "same"))), None)
    assert (said.probability.tolist(), said.kind.tolist(), said.same.tolist()) == ([0.6], [KINDS.index(FIELD)], [True])
    assert (said.sample.value.tolist(), said.sample.at.tolist()) == ([0.5], [1])
    assert len(answers_of(answered(ledger()), None).same) == 0


def test_answers_are_in_the_order_in_which_they_were_last_given() -> None:
    first = asked("a", "b"), asked("c", "d"), judged("a", "b", "different")
    rows = answered(ledger(*first, judged("c", "d", "same"), judged("a", "b", "same"), judged("a", "b", "skip")))
    assert rows.select("probability", "same", "at").rows() == [(0.6, True, 3), (0.6, True, 4)]


def test_a_merge_that_a_person_undid_is_an_answer_different() -> None:
    undone = asked("a", "b"), merged("b", "a"), unmerged("b", "a")
    assert rows(*undone) == [(0.6, FIELD, False)]
    assert rows(*undone, judged("a", "b", "same")) == [(0.6, FIELD, True)]
    assert rows(asked("a", "b"), judged("a", "b", "same"), *undone[1:]) == [(0.6, FIELD, False)]


def test_a_merge_that_no_person_undid_is_no_answer() -> None:
    kind, topic, payload = unmerged("b", "a")
    assert rows(asked("a", "b"), merged("b", "a"), (kind, topic, payload | {"actor": "placements"})) == []


# Which answers are a sample

QUEUE = sorted((("a", "b"), ("c", "d"), ("e", "f")), key=lambda pair: drawn_of(*pair).item())
"""Pairs of one value in the order in which they are asked about."""


def sampled(*decisions: tuple[Any, ...]) -> list[bool]:
    """Whether each verdict was given in the order of the queue."""
    return answered(ledger(*decisions))["in_order"].to_list()


def test_answers_in_the_order_of_the_queue_are_a_sample() -> None:
    waiting = [asked(*pair) for pair in QUEUE]
    assert sampled(*waiting, judged(*QUEUE[0], "same"), judged(*QUEUE[1], "different")) == [True, True]
    assert sampled(*waiting, *[judged(*pair, "same") for pair in reversed(QUEUE)]) == [True, True, True]


def test_answers_about_picked_pairs_are_none() -> None:
    waiting = [asked(*pair) for pair in QUEUE]
    assert sampled(*waiting, judged(*QUEUE[1], "same")) == [False]
    assert sampled(*waiting, judged(*QUEUE[0], "same"), judged(*QUEUE[2], "same")) == [True, False]


def test_an_answer_different_counts_in_any_order() -> None:
    waiting = [asked(*pair) for pair in QUEUE]
    for verdict, expected in (("different", [False]), ("same", []), ("skip", [])):
        said = answers_of(answered(ledger(*waiting, judged(*QUEUE[1], verdict))), None)
        assert said.sample.same.tolist() == expected


def test_a_skipped_pair_does_not_stand_before_others() -> None:
    waiting = [asked(*pair) for pair in QUEUE]
    assert sampled(*waiting, judged(*QUEUE[0], "skip"), judged(*QUEUE[1], "same")) == [True, True]


@pytest.mark.parametrize(
    "first",
    [
        [],  # not suggested
        [asked(*QUEUE[0]), withdrawn(*QUEUE[0])],
        [(*asked(*QUEUE[0])[:2], asked(*QUEUE[0])[2] | {"value": 0.4})],  # of another value
        [asked(*QUEUE[0], probability=0.4)],  # less likely than its value
        [asked(*QUEUE[0]), merged(QUEUE[0][1], QUEUE[0][0])],
    ],
)
def test_a_pair_that_was_not_to_be_asked_about_before_does_not_stand_before_others(
    first: list[tuple[Any, ...]],
) -> None:
    assert sampled(*first, asked(*QUEUE[1]), judged(*QUEUE[1], "same")) == [True]


def test_a_pair_that_was_suggested_after_an_answer_does_not_stand_before_it() -> None:
    assert sampled(asked(*QUEUE[1]), judged(*QUEUE[1], "same"), asked(*QUEUE[0])) == [True]


# Which pairs wait, and since when


def waits(*decisions: tuple[Any, ...]) -> list[tuple[str, str, int]]:
    found = waiting(ledger(*decisions))
    assert found["scope"].unique().to_list() in ([], ["user:aya"])
    return sorted(found.select("a", "b", "at").rows())


def test_pairs_wait_since_they_were_last_suggested() -> None:
    assert waits() == []
    assert waits(asked("a", "b"), asked("c", "d")) == [("a", "b", 0), ("c", "d", 1)]
    assert waits(asked("a", "b"), asked("c", "d"), asked("a", "b", 0.9)) == [("a", "b", 2), ("c", "d", 1)]


def test_a_pair_that_was_withdrawn_waits_only_since_it_was_suggested_again() -> None:
    assert waits(asked("a", "b"), withdrawn("a", "b")) == []
    assert waits(asked("a", "b"), withdrawn("a", "b"), asked("a", "b")) == [("a", "b", 2)]


def test_a_pair_waits_as_what_its_topics_were_merged_into() -> None:
    suggested = asked("b", "c"), asked("a", "c"), asked("a", "b")
    assert waits(*suggested, merged("b", "a")) == [("a", "c", 0)]
    assert waits(*suggested, merged("b", "a"), unmerged("b", "a")) == [("a", "b", 2), ("a", "c", 1), ("b", "c", 0)]


@pytest.mark.slow
def test_a_night_values_pairs_by_the_answers_of_the_day_before(tmp_path: Path) -> None:
    store = open_store(tmp_path, {})
    things = [f"Contract with {name} on the cleaning of the office" for name in ("Anna", "Bruno", "Carla", "Dario")]
    topics = {f"{title} {side}": {"title": title, "fields": [price(side)]} for title in things for side in (1, 2)}
    record(store, topics, 1)
    night(store, 2)
    waiting = suggestions(decisions(store))
    answers = [judged(a, b, "different") for a, b in waiting.select("a", "b").head(3).iter_rows()]
    night(store, 3, answers)
    (left,) = suggestions(decisions(store)).to_dicts()
    (before,) = waiting.join(pl.DataFrame([left]).select("a", "b"), on=["a", "b"]).to_dicts()
    assert before["value"] == min(round(before["probability"], 4), 0.9)
    assert left["value"] < min(left["probability"], before["value"]) / 2


def decisions(store: Store) -> pl.DataFrame:
    return store.ledger.scan("transitions").collect().sort("seq")


def price(side: int) -> dict[str, Any]:
    return {"name": "price", "value": 100 * side}
