"""Groups of duplicates: no chains, nothing together that must be apart, whatever the order."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstate_core.revise.matching import clustering
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.clustering import LEAST_MEAN, MEAN, group, in_group

SURE = 0.9
Likely = dict[tuple[int, int], float]
Groups = set[frozenset[int]]


def groups(likely: Likely, *apart: tuple[int, int], topics: int = 8, sure: float = SURE) -> Groups:
    """Groups of two topics and more, of scored pairs and of those that must be apart."""
    return together(number(list({**dict.fromkeys(apart, 0.0), **likely}.items()), {*apart}, topics, sure))


def number(
    rows: list[tuple[tuple[int, int], float]], apart: set[tuple[int, int]], topics: int, sure: float = SURE
) -> Any:
    a, b = np.array([pair for pair, _ in rows], np.int64).reshape(-1, 2).T
    pairs = Candidates(a, b, np.ones((len(a), 3), bool))
    probability = np.array([value for _, value in rows], float)
    barred = np.array([pair in apart for pair, _ in rows], bool)
    return group(pairs, probability, probability, barred, topics=topics, sure=sure)


def together(numbers: Any) -> Groups:
    return {frozenset(np.flatnonzero(numbers == one).tolist()) for one in set(numbers) if (numbers == one).sum() > 1}


def test_sure_pairs_are_groups_and_the_rest_is_alone() -> None:
    assert groups({(0, 1): 0.95, (2, 5): SURE, (3, 4): 0.89, (6, 7): 0.1}) == {frozenset({0, 1}), frozenset({2, 5})}


@pytest.mark.parametrize("topics", [0, 1, 5])
def test_without_pairs_everybody_is_alone(topics: int) -> None:
    numbers = number([], set(), topics)
    assert len(set(numbers.tolist())) == topics


def test_all_of_whom_all_are_likely_become_one() -> None:
    clique = {(a, b): 0.95 for a in range(5) for b in range(a + 1, 5)}
    assert groups(clique) == {frozenset(range(5))}


def test_a_pair_that_says_little_joins_where_the_others_are_sure() -> None:
    assert groups({(0, 1): 0.99, (1, 2): 0.95, (0, 2): 0.5}) == {frozenset({0, 1, 2})}


@pytest.mark.parametrize("length", [3, 4, 5, 8, 20])
def test_a_chain_of_sure_pairs_does_not_tie_its_ends(length: int) -> None:
    chain = {(number, number + 1): 0.99 - number / 1000 for number in range(length - 1)}
    found = groups(chain, topics=length)
    assert found
    assert max(len(members) for members in found) < 3


def test_two_groups_with_one_sure_pair_between_them_stay_two() -> None:
    sides = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
    assert groups(dict.fromkeys(sides, 0.99) | {(2, 3): 0.95}) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


@pytest.mark.parametrize(("ends", "one"), [(0.0, False), (2 * MEAN - 0.72, False), (2 * MEAN - 0.68, True)])
def test_a_third_joins_two_while_the_mean_of_its_pairs_holds(ends: float, one: bool) -> None:
    likely = {(0, 1): 0.75, (1, 2): 0.7, (0, 2): ends}
    assert groups(likely, sure=0.6) == {frozenset({0, 1, 2}) if one else frozenset({0, 1})}


def test_a_pair_that_must_be_apart_parts_its_chain_however_sure_the_rest_is() -> None:
    clique = {(a, b): 0.999 for a in range(6) for b in range(a + 1, 6)}
    found = groups({pair: value for pair, value in clique.items() if pair != (0, 5)}, (0, 5))
    assert not any({0, 5} <= members for members in found)
    assert {1, 2, 3, 4} <= max(found, key=len)


def test_a_pair_that_must_be_apart_starts_no_group() -> None:
    assert groups({(0, 1): 0.999}, (0, 1)) == set()


def test_what_connects_too_many_topics_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clique = {(a, b): 0.95 for a in range(4) for b in range(a + 1, 4)} | {(5, 6): 0.95}
    monkeypatch.setattr(clustering, "MAX_COMPONENT", 3)
    assert groups(clique) == {frozenset({5, 6})}
    monkeypatch.setattr(clustering, "MAX_COMPONENT", 4)
    assert groups(clique) == {frozenset(range(4)), frozenset({5, 6})}


def test_a_forbidden_pair_outweighs_all_others_of_the_largest_component() -> None:
    """Two halves joined by a million pairs that are certain, but for one."""
    half = clustering.MAX_COMPONENT // 2
    assert (clustering.APART + 1) / (half * half) > 1 - MEAN


pairs = st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1])
scored = st.dictionaries(pairs, st.floats(0, 1), max_size=28)


@given(scored, st.data())
def test_pairs_that_must_be_apart_never_share_a_group(likely: Likely, data: st.DataObject) -> None:
    apart = data.draw(st.sets(st.sampled_from(sorted(likely)))) if likely else set()
    for members in groups(likely, *apart):
        assert not any(a in members and b in members for a, b in apart)


@given(scored)
@example({(0, 1): 0.75, (0, 2): 0.9375, (1, 3): 1.0, (2, 3): 1.0})
def test_a_group_holds_together_on_average_and_by_a_sure_pair(likely: Likely) -> None:
    """Also where the cut leaves two topics that are only likely to be one: C2 refuses a group without a sure pair."""
    for members in groups(likely):
        inside = [value for (a, b), value in likely.items() if a in members and b in members]
        assert any(value >= SURE for value in inside)
        own = [[value for pair, value in likely.items() if one in pair and members.issuperset(pair)] for one in members]
        assert all(sum(values) >= LEAST_MEAN * len(values) for values in own)
        assert sum(inside) / (len(members) * (len(members) - 1) / 2) >= MEAN - 1e-9


def test_a_topic_that_a_group_hardly_supports_leaves_it() -> None:
    """Two groups join by their mean, though topic 0 is unlikely to be any of the other group's."""
    one, other = range(4), range(4, 8)
    likely = {(a, b): 0.96 if a == 0 else 1.0 for a, b in combinations(one, 2)}
    likely |= dict.fromkeys(combinations(other, 2), 1.0)
    likely |= {(a, b): 0.1 if a == 0 else 0.95 for a, b in product(one, other)}
    assert groups(likely) == {frozenset(range(1, 8))}


@given(scored, st.permutations(range(8)), st.randoms(use_true_random=False))
def test_neither_the_order_of_pairs_nor_of_topics_shows(likely: Likely, renamed: list[int], chance: Any) -> None:
    """Probabilities that differ, so that there are no ties to break."""
    distinct = {pair: (value + place) / 29 for place, (pair, value) in enumerate(sorted(likely.items()))}
    lifted = {pair: max(value, 0.9 + value / 10) if value > 0.5 else value for pair, value in distinct.items()}
    rows = list(lifted.items())
    assert together(number(chance.sample(rows, len(rows)), set(), 8)) == groups(lifted)
    moved = {(min(renamed[a], renamed[b]), max(renamed[a], renamed[b])): value for (a, b), value in rows}
    assert groups(moved) == {frozenset(renamed[one] for one in members) for members in groups(lifted)}


def likely_in_group(likely: dict[str, float]) -> dict[str, float]:
    """The probability of pairs, named by the letters of their topics, given their groups."""
    a, b = (np.array([pair[end] for pair in likely], object) for end in (0, 1))
    return dict(zip(likely, in_group(a, b, np.array(list(likely.values()))).round(9).tolist(), strict=True))


def test_a_merged_pair_is_as_likely_as_both_of_its_topics_are_the_same_as_the_centre() -> None:
    """The centre is c, and each doubt of the others about it counts; p and q are a group of their own."""
    given = {"cx": 0.95, "cy": 0.97, "cz": 0.99, "xy": 0.1, "xz": 0.93, "yz": 0.2, "pq": 0.9}
    assert likely_in_group(given) == given | {"xy": 0.92, "xz": 0.94, "yz": 0.96}


def test_a_merged_pair_is_as_likely_as_the_less_certain_of_its_topics() -> None:
    """Topic y was never compared with the centre c, so its mean counts."""
    given = {"cx": 0.95, "cz": 0.99, "xy": 0.9, "xz": 0.8, "yz": 0.5}
    assert likely_in_group(given) == given | {"xz": 0.94, "yz": 0.7}


def test_no_pair_has_no_doubt() -> None:
    nothing = np.empty(0, np.int64)
    assert len(in_group(nothing, nothing, np.empty(0))) == 0
