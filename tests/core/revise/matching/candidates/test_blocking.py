"""Which pairs are compared: never across scopes or kinds, and of a group of duplicates all of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memstate_core.revise.matching.candidates import blocking
from memstate_core.revise.matching.candidates.blocking import (
    Candidates,
    all_pairs,
    completeness,
    joined,
    nearest_neighbours,
    within_groups,
)
from memstate_core.revise.matching.corpus import Corpus
from tests.core.revise.matching.corpora import corpus

Pairs = set[tuple[int, int]]

topics = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(["user:aya", "user:ben"]),
        "topic_kind": st.sampled_from([None, "deal", " DEAL", "person"]),
        "title": st.sampled_from(["Acme renewal", "Acme", "Plan B", None]),
        "summary": st.sampled_from([None, "Renewed in May"]),
    }
)
stores = st.lists(topics, max_size=9).map(corpus)


def listed(pairs: Candidates) -> list[tuple[int, int]]:
    return list(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))


def comparable(of: Corpus) -> Pairs:
    """Pairs of one scope whose kinds are the same or unknown, by plain loops."""
    rows = of.topics.select("scope", "topic_kind").rows()
    kinds = [None if kind is None else kind.strip().lower() for _, kind in rows]
    return {
        (a, b)
        for a, b in combinations(range(len(rows)), 2)
        if rows[a][0] == rows[b][0] and (kinds[a] == kinds[b] or None in (kinds[a], kinds[b]))
    }


@pytest.mark.slow
@given(stores)
def test_pairs_are_counted_as_brute_force_counts_them(of: Corpus) -> None:
    assert all_pairs(of) == len(comparable(of))


@pytest.mark.slow
@given(stores)
def test_only_topics_of_one_scope_and_compatible_kinds_become_candidates(of: Corpus) -> None:
    """In so small a store every pair with anything in common is among the nearest."""
    found = nearest_neighbours(of)
    assert listed(found) == sorted(set(listed(found)))
    assert found.seen_by.shape == (len(found), len(blocking.VIEWS))
    assert found.seen_by.any(axis=1).all()
    titles = of.titles
    alike = {(a, b) for a, b in comparable(of) if titles[a] and titles[a] == titles[b]}
    assert alike <= set(listed(found)) <= comparable(of)


def test_each_view_proposes_its_own_neighbours() -> None:
    """Alike in letters alone, in summary or fields alone, in meaning alone."""
    of = corpus(
        [
            {"title": "Acmerenewal", "vector": [1.0]},
            {"title": "Acmerenewals", "vector": [0.0, 1.0]},
            {"title": "x", "summary": "quartz", "vector": [0.0, 0.0, 1.0]},
            {"title": "y", "fields": {"stone": "quartz"}, "vector": [0.0, 0.0, 0.0, 1.0]},
            {"title": "z", "vector": [0.0] * 4 + [1.0]},
            {"title": "q", "vector": [0.0] * 4 + [1.0]},
        ]
    )
    found = nearest_neighbours(of)
    assert listed(found) == [(0, 1), (2, 3), (4, 5)]
    np.testing.assert_array_equal(found.seen_by, np.eye(3, dtype=bool))


def test_a_topic_has_so_many_neighbours_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "NEIGHBOURS", 2)
    found = nearest_neighbours(corpus([{"title": "Acme renewal", "vector": [0.0]}] * 30))
    assert found.seen_by.sum(axis=0).tolist() <= [60, 60, 0]
    assert set(found.a) | set(found.b) == set(range(30))


# Groups


def some(pairs: Pairs) -> Candidates:
    a, b = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return Candidates(a, b, np.ones((len(a), 3), bool))


def reachable(pairs: Pairs, count: int) -> Pairs:
    """Pairs that a chain connects, by painting."""
    colour = list(range(count))
    for a, b in pairs:
        colour = [colour[a] if of == colour[b] else of for of in colour]
    return {(a, b) for a, b in combinations(range(count), 2) if colour[a] == colour[b]}


@given(stores, st.data())
def test_within_groups_adds_exactly_the_missing_pairs(of: Corpus, data: st.DataObject) -> None:
    known = data.draw(st.sets(st.sampled_from(sorted(comparable(of))))) if comparable(of) else set()
    probable = data.draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
    pairs = some(known)
    more = within_groups(of, pairs, np.array([pair in probable for pair in listed(pairs)], bool))
    assert set(listed(more)) == (reachable(probable, len(of)) & comparable(of)) - known
    assert len(set(listed(more))) == len(more)
    assert not more.seen_by.any()
    assert listed(joined(pairs, more)) == listed(pairs) + listed(more)


def test_a_group_too_large_to_complete_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    of = corpus([{"title": "Acme"}] * 6)
    chain = some({(0, 1), (1, 2), (2, 3), (4, 5)})
    monkeypatch.setattr(blocking, "MAX_GROUP", 3)
    assert len(within_groups(of, chain, np.ones(4, bool))) == 0
    monkeypatch.setattr(blocking, "MAX_GROUP", 4)
    assert set(listed(within_groups(of, chain, np.ones(4, bool)))) == {(0, 2), (0, 3), (1, 3)}


# How much the views miss

views = st.integers(1, 20).flatmap(
    lambda count: st.tuples(arrays(bool, (count, 3)), arrays(float, count, elements=st.floats(0, 1)))
)


@pytest.mark.slow
@given(views)
def test_completeness_is_a_share_or_unknown(drawn: tuple[Any, Any]) -> None:
    seen_by, probability = drawn
    share = completeness(seen_by, probability)
    assert share is None or 0 <= share <= 1
    assert (share is None) == (probability[seen_by.any(axis=1)].sum() < 1)


def test_views_that_agree_miss_little_and_views_that_never_agree_miss_much() -> None:
    both, certain = np.ones((40, 3), bool), np.ones(40)
    assert completeness(both, certain) == 1.0
    either = np.zeros((40, 3), bool)
    either[:20, 0] = either[20:, 2] = True
    assert completeness(either, certain) == pytest.approx(40 / (21 * 21 - 1))
