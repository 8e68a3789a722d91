"""What answers say about other pairs: how likely these are the same, and whether a fit is wrong."""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import Constraints, constraints
from memstate_core.revise.matching.answers import KINDS, Answers, estimated, refuted
from memstate_core.revise.matching.deduplication import Deduplicated
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import LANGUAGES, crowd, family, store
from tests.core.revise.matching.given_answers import answers
from tests.core.revise.test_verdicts import judged, ledger

FIELD, ACROSS = KINDS.index("field/within"), KINDS.index("field/across")
FREE, TITLED = KINDS.index("/"), KINDS.index("field/within/one title")
LIKELY = 0.95

answer_lists = st.lists(st.tuples(st.floats(0.01, 0.999), st.sampled_from(range(len(KINDS))), st.booleans()))


def estimate(probability: float, kind: int, said: Answers) -> float:
    return float(estimated(np.array([probability]), np.array([kind]), said)[0])


# The estimate


@given(st.floats(0, 1), st.sampled_from(range(len(KINDS))))
def test_without_answers_the_fitted_probability_holds(probability: float, kind: int) -> None:
    assert estimate(probability, kind, Answers.none()) == probability


def test_answers_about_one_kind_say_most_about_that_kind() -> None:
    said = answers(*[(LIKELY, FIELD, False)] * 8)
    assert estimate(LIKELY, FIELD, said) < 0.1
    assert 3 * estimate(LIKELY, FIELD, said) < estimate(LIKELY, ACROSS, said) < estimate(LIKELY, FREE, said)


def test_answers_the_same_raise_unlikely_pairs_of_their_kind() -> None:
    said = answers(*[(0.3, FIELD, True)] * 8)
    assert estimate(0.1, FIELD, said) > 0.3


def test_answers_about_unlikely_pairs_with_one_title_say_little_about_other_unlikely_pairs() -> None:
    said = answers(*[(0.01, TITLED, True)] * 12)
    assert estimate(0.0001, TITLED, said) > 0.2
    assert estimate(0.0001, FIELD, said) < 0.1


def test_a_single_answer_says_little_against_many() -> None:
    said = answers(*[(LIKELY, FIELD, True)] * 12, (LIKELY, FIELD, False))
    assert estimate(LIKELY, FIELD, said) > 0.75


@given(answer_lists, st.sampled_from(range(len(KINDS))))
def test_likelier_pairs_stay_likelier_within_a_kind(rows: list[tuple[float, int, bool]], kind: int) -> None:
    ascending = np.array([0.0, 0.01, 0.2, 0.6, 0.9, 0.99])
    found = estimated(ascending, np.full(6, kind), answers(*rows))
    assert (np.diff(found) > 0).all()
    assert ((found >= 0) & (found < 1)).all()
    assert found[0] == 0


# The fit


@pytest.mark.parametrize(
    ("right", "wrong", "is_refuted"),
    [(0, 0, False), (0, 1, False), (0, 2, True), (20, 0, False), (17, 3, False), (16, 4, True)],
)
def test_too_many_different_pairs_refute_the_fit(right: int, wrong: int, is_refuted: bool) -> None:
    said = answers(*[(LIKELY, FREE, True)] * right, *[(LIKELY, FREE, False)] * wrong)
    assert refuted(said, wrong, 0.9) is is_refuted


def test_unlikely_pairs_that_are_the_same_do_not_speak_for_the_fit() -> None:
    assert refuted(answers(*[(0.5, FREE, True)] * 30), 4, 0.9)


def test_a_run_abstains_where_people_judged_different_what_the_fit_would_merge() -> None:
    topics = longer_titles(40)
    fitted = dedupe(topics)
    merged = np.flatnonzero(fitted.grouped)
    judged_once, judged_twice = (dedupe(topics, different(fitted, merged[:count])) for count in (1, 2))
    assert len(merged) == 40
    assert judged_once.grouped.sum() == 39
    assert judged_twice.grouped.sum() == 0
    assert judged_twice.decision.held_back.sum() == 38


def longer_titles(count: int) -> list[dict[str, Any]]:
    """Things that are named twice, the second time with a word more, and have three fields that others share."""
    topics = []
    for number in range(count):
        chance = random.Random(number)
        words = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(4)]
        fields = {f"field{place}": LANGUAGES[chance.randrange(12)] for place in range(3)}
        topics += [{"title": " ".join(words[:size]), "fields": fields} for size in (3, 4)]
    return topics


def different(found: Deduplicated, rows: NDArray[np.int64]) -> Constraints:
    """The constraints after verdicts `different` on pairs of numbered topics."""
    pairs = zip(found.pairs.a[rows], found.pairs.b[rows], strict=True)
    verdicts = [judged(f"t{a:05}", f"t{b:05}", "different") for a, b in pairs]
    return constraints(ledger(*verdicts), empty(EVIDENCE_TOPIC))


# What they join


def test_an_answer_joins_all_topics_of_two_groups_and_those_merged_before() -> None:
    topics = longer_titles(40)
    held = replace(EarlierMerges.none(len(topics)), absorbed=np.full(len(topics), 2))
    for earlier, size in ((None, 2), (held, 6)):
        found = dedupe(topics, earlier=earlier)
        assert found.grouped.sum() == 40
        assert (found.joins(np.flatnonzero(~found.grouped)) == size**2).all()


# Merges


@functools.cache
def unanswered() -> tuple[list[dict[str, Any]], Deduplicated]:
    """A store, and its duplicates without answers."""
    topics = store([*family("number", 0, 12), *crowd(20)], "typo").topics
    return topics, dedupe(topics)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_answers_about_unlikely_pairs_order_questions_and_merge_nothing(kind: int) -> None:
    topics, without = unanswered()
    found = dedupe(topics, answers=answers(*[(0.05, kind, True)] * 60))
    assert np.array_equal(found.groups, without.groups)
    assert np.array_equal(found.scored.probability, without.scored.probability)
    assert (found.expected > without.expected).any()


# Kinds


def test_kinds_know_numbers_in_titles_and_sources() -> None:
    titles = ["Notes of sprint 3 in Lyon", "Notes of sprint 18 in Lyon", "Notes of sprint 3 in Ghent"]
    made = [{"title": title, "sources": ["one"]} for title in titles]
    found = dedupe([*made, {"title": titles[0], "sources": ["other"]}, {"title": titles[0]}])
    kinds = {(a, b): KINDS[kind] for a, b, kind in zip(found.pairs.a, found.pairs.b, found.kinds, strict=True)}
    assert kinds[0, 1] == "title number/within"
    assert kinds[0, 2] == "title/within"
    assert kinds[0, 3] == "/across/one title"
    assert kinds[0, 4] == "//one title"
