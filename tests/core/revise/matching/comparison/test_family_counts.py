"""How many other titles share as much with a topic of a pair, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison import contradictions
from memstate_core.revise.matching.comparison.contradictions import SAME_SHARE

TOPICS = 6
topics = st.integers(0, TOPICS - 1)
shares = st.dictionaries(
    st.tuples(topics, topics).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from([0.0, 2.0, 2.25, 2.5, 9.0, 2000.0]),
)
"""The nats that the titles of pairs share."""


def of_one_end(topic: int, shared: float, titles: list[int], pairs: dict[tuple[int, int], float]) -> int:
    others = [(a + b - topic, nats) for (a, b), nats in pairs.items() if topic in (a, b)]
    return len({titles[other] for other, nats in others if nats >= min(shared, 900) - SAME_SHARE})


@pytest.mark.parametrize("at_once", [1, 5, 1000])
@given(shares, st.lists(st.integers(0, 3), min_size=TOPICS, max_size=TOPICS))
def test_the_fewer_of_both_topics_count(at_once: int, pairs: dict[tuple[int, int], float], titles: list[int]) -> None:
    """Topics with one title count once; what more than 900 nats are is not compared."""
    a, b = np.array(list(pairs), np.int64).reshape(-1, 2).T
    given_pairs = Candidates(a, b, np.zeros((len(a), 0), bool))
    nats = np.array(list(pairs.values()), np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contradictions, "ENDS_AT_ONCE", at_once)
        found = contradictions._family(nats, np.array(titles), given_pairs)
    expected = [
        min(of_one_end(one, shared, titles, pairs), of_one_end(other, shared, titles, pairs)) - 1
        for (one, other), shared in pairs.items()
    ]
    assert found.tolist() == expected
