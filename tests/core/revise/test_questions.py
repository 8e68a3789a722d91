"""Which pairs people are asked about, in which order, and about which topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC, REVIEW_BAND
from memstate_core.revise.constraints import Constraints, constraints
from memstate_core.revise.matching.answers import KINDS, Answers
from memstate_core.revise.scope_matches import FEW_PAIRS, ScopeMatches
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.given_answers import answers
from tests.core.revise.test_verdicts import judged, ledger
from tests.core.strategies import day

NONE = constraints(ledger(), empty(EVIDENCE_TOPIC))
"""Nothing is kept apart."""


def test_pairs_that_answers_make_likely_are_asked_about() -> None:
    topics = [{"title": f"Notes of the meeting on the {place} bridge"} for place in ("northern", "southern", "old")]
    same = answers(*[(0.05, KINDS.index("title/"), True)] * 40)
    asked = []
    for said in (Answers.none(), same):
        found = dedupe(topics, answers=said)
        sure, doubtful = np.full(len(found.pairs), 0.9), np.full(len(found.pairs), 0.2)
        pairs = ScopeMatches("user:aya", corpus(topics), found, sure, doubtful, NONE).pairs
        asked.append(pairs.filter(pl.col("pair_kind") == "title/"))
    assert asked[0].is_empty()
    assert asked[1].height == 3
    assert (asked[1]["probability"] < 0.2).all()
    assert asked[1]["value"].is_between(0.2, 0.9).all()


def suggested_pairs(
    expected: Sequence[float],
    size: float,
    *groups: int,
    oldest: int | None = None,
    limits: Constraints = NONE,
) -> pl.DataFrame:
    """The pairs that are suggested, of topics with one title and another rent each.

    Args:
        expected: the probability of the answer `same` for each pair.
        size: how many topics the group of each topic has, merged ones among them.
        groups: the group of each topic.
        oldest: the topic that is older than the others, if any.
        limits: topics that are kept apart.
    """
    topics = [
        {"title": "Lease of the mill", "fields": {"rent": 100 * number}, "created_at": day(int(number != oldest))}
        for number in range(len(groups))
    ]
    every = dedupe(topics, limits)
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
    pairs = ScopeMatches("user:aya", corpus(topics), found, nothing + 0.9, nothing + 0.2, limits).pairs
    return pairs.filter(pl.col("band") == REVIEW_BAND)


def review(expected: float, size: float, *groups: int) -> list[float]:
    """The values of the pairs that are suggested, all of which are as likely the same."""
    return suggested_pairs([expected] * comb(len(groups), 2), size, *groups)["value"].to_list()


def test_two_groups_are_one_question() -> None:
    assert review(0.5, 2.0, 0, 0, 0, 1, 1) == [0.5]
    assert review(0.5, 1.0, 0, 1, 2, 3, 4) == [0.5] * 10


def test_the_likeliest_pair_of_two_groups_is_a_question_about_the_topics_that_they_are_merged_into() -> None:
    """That pair is one of topics that are merged away, about which nobody can be asked any more."""
    likely = [0.9 if pair == (2, 4) else 0.5 for pair in combinations(range(5), 2)]
    asked = suggested_pairs(likely, 2.0, 0, 0, 0, 1, 1)
    assert asked.select("a", "b", "value").rows() == [("t00000", "t00003", 0.9)]
    asked = suggested_pairs(likely, 2.0, 0, 0, 0, 1, 1, oldest=1)
    assert asked.select("a", "b").rows() == [("t00001", "t00003")]


@pytest.mark.parametrize(
    ("different", "asked"),
    [((0, 3), ("t00002", "t00004")), ((1, 3), ("t00002", "t00004")), ((0, 1), ("t00000", "t00003"))],
)
def test_nobody_is_asked_about_groups_of_which_topics_are_kept_apart(
    different: tuple[int, int], asked: tuple[str, str]
) -> None:
    """The question stays one about topics that are merged away, which no list of questions shows."""
    likely = [0.9 if pair == (2, 4) else 0.5 for pair in combinations(range(5), 2)]
    a, b = (f"t{number:05}" for number in different)
    limits = constraints(ledger(judged(a, b, "different")), empty(EVIDENCE_TOPIC))
    found = suggested_pairs(likely, 2.0, 0, 0, 0, 1, 1, limits=limits)
    assert found.select("a", "b").rows() == [asked]


@pytest.mark.parametrize(("size", "value"), [(1.0, 0.5), (2.0, 0.5), (4.0, 1.0), (8.0, 4.0)])
def test_an_answer_that_joins_more_than_a_few_pairs_is_worth_more(size: float, value: float) -> None:
    assert FEW_PAIRS == 8
    assert review(0.5, size, 0, 1) == [value]


def test_pairs_with_one_title_are_asked_about_by_how_many_pairs_of_topics_they_join() -> None:
    """More topics have it than those of which all pairs are asked about."""
    assert review(0.01, 1.0, 0, 1, 2, 3) == []
    assert review(0.01, 8.0, 0, 1, 2, 3) == [0.08] * 6
