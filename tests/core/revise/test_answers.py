"""Which answers about suggested pairs are read from decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.step_frames import REVIEW_BAND
from memstate_core.revise.answers import answered, answers_of
from memstate_core.revise.matching.answers import KINDS, Answers
from memstate_core.revise.scope_matches import FEW_PAIRS, ScopeMatches
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import suggestions
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.nights import night, record
from tests.core.revise.test_verdicts import judged, ledger, merged, suggested
from tests.core.strategies import day

FIELD = "field/within"


def asked(a: str, b: str, probability: float = 0.6, kind: str = FIELD) -> tuple[Any, ...]:
    decision, topic, payload = suggested(a, b)
    return decision, topic, payload | {"probability": probability, "pair_kind": kind}


def rows(*decisions: tuple[Any, ...]) -> list[tuple[float, str, bool]]:
    return answered(ledger(*decisions)).select("probability", "pair_kind", "same").rows()


def test_an_answer_counts_with_the_pair_as_it_was_last_suggested() -> None:
    again = asked("a", "b", 0.8, "title/across")
    assert rows(asked("a", "b", 0.3), again, judged("a", "b", "different")) == [(0.8, "title/across", False)]


def test_an_answer_counts_after_the_merge_that_follows_from_it() -> None:
    assert rows(asked("a", "b"), judged("a", "b", "same"), merged("b", "a")) == [(0.6, FIELD, True)]


def test_skips_and_pairs_without_a_known_kind_do_not_count() -> None:
    skipped = asked("a", "b"), judged("a", "b", "skip")
    older = suggested("c", "d"), judged("c", "d", "same")
    unknown = asked("e", "f", kind="of a later version"), judged("e", "f", "same")
    assert rows(*skipped, *older, *unknown, judged("g", "h", "same")) == []


def test_answers_have_the_number_of_their_kind() -> None:
    said = answers_of(answered(ledger(asked("a", "b"), judged("a", "b", "same"))))
    assert (said.probability.tolist(), said.kind.tolist(), said.same.tolist()) == ([0.6], [KINDS.index(FIELD)], [True])
    assert len(answers_of(answered(ledger())).same) == 0


# Questions


def test_pairs_that_answers_make_likely_are_asked_about() -> None:
    topics = [{"title": f"Notes of the meeting on the {place} bridge"} for place in ("northern", "southern", "old")]
    same = Answers(np.full(40, 0.05), np.full(40, KINDS.index("title/")), np.ones(40, bool))
    asked = []
    for said in (Answers.none(), same):
        found = dedupe(topics, answers=said)
        sure, doubtful = np.full(len(found.pairs), 0.9), np.full(len(found.pairs), 0.2)
        pairs = ScopeMatches("user:aya", corpus(topics), found, sure, doubtful).pairs
        asked.append(pairs.filter(pl.col("pair_kind") == "title/"))
    assert asked[0].is_empty()
    assert asked[1].height == 3
    assert (asked[1]["probability"] < 0.2).all()
    assert asked[1]["value"].is_between(0.2, 0.9).all()


def suggested_pairs(expected: Sequence[float], size: float, *groups: int, oldest: int | None = None) -> pl.DataFrame:
    """The pairs that are suggested, of topics with one title and another rent each.

    Args:
        expected: the probability of the answer `same` for each pair.
        size: how many topics the group of each topic has, merged ones among them.
        groups: the group of each topic.
        oldest: the topic that is older than the others, if any.
    """
    topics = [
        {"title": "Lease of the mill", "fields": {"rent": 100 * number}, "created_at": day(int(number != oldest))}
        for number in range(len(groups))
    ]
    every = dedupe(topics)
    assert list(zip(every.pairs.a, every.pairs.b, strict=True)) == list(combinations(range(len(groups)), 2))
    nothing = np.zeros(len(every.pairs))
    scored = replace(every.scored, probability=nothing)
    found = replace(
        every,
        groups=np.array(groups),
        expected=np.array(expected),
        sizes=np.full(len(groups), size),
        scored=scored,
    )
    pairs = ScopeMatches("user:aya", corpus(topics), found, nothing + 0.9, nothing + 0.2).pairs
    return pairs.filter(pl.col("band") == REVIEW_BAND)


def review(expected: float, size: float, *groups: int) -> list[float]:
    """The values of the pairs that are suggested, all of which are as likely the same."""
    return suggested_pairs([expected] * comb(len(groups), 2), size, *groups)["value"].to_list()


def test_two_groups_are_one_question() -> None:
    assert review(0.5, 2.0, 0, 0, 0, 1, 1) == [0.5]
    assert review(0.5, 1.0, 0, 1, 2, 3, 4) == [0.5] * 10


def test_what_is_asked_of_two_groups_are_the_topics_that_they_are_merged_into() -> None:
    """The likeliest pair is one of topics that are merged away, about which nobody can be asked any more."""
    likely = [0.9 if pair == (2, 4) else 0.5 for pair in combinations(range(5), 2)]
    asked = suggested_pairs(likely, 2.0, 0, 0, 0, 1, 1)
    assert asked.select("a", "b", "value").rows() == [("t00000", "t00003", 0.5)]
    asked = suggested_pairs(likely, 2.0, 0, 0, 0, 1, 1, oldest=1)
    assert asked.select("a", "b").rows() == [("t00001", "t00003")]


@pytest.mark.parametrize(("size", "value"), [(1.0, 0.5), (2.0, 0.5), (4.0, 1.0), (8.0, 4.0)])
def test_an_answer_that_joins_more_than_a_few_pairs_is_worth_more(size: float, value: float) -> None:
    assert FEW_PAIRS == 8
    assert review(0.5, size, 0, 1) == [value]


def test_pairs_with_one_title_are_asked_about_by_how_many_pairs_of_topics_they_join() -> None:
    """More topics have it than those of which all pairs are asked about."""
    assert review(0.01, 1.0, 0, 1, 2, 3) == []
    assert review(0.01, 8.0, 0, 1, 2, 3) == [0.08] * 6


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
