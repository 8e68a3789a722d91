"""Which pairs count in each part of a search: in the fit, in the two readings of a title, and within groups."""

from __future__ import annotations

import numpy as np
import pytest

from memstate_core.model.frames import empty
from memstate_core.revise.matching.candidates.blocking import NEIGHBOURS
from memstate_core.revise.matching.comparison.comparisons import compare, ranked
from memstate_core.revise.matching.comparison.siblings import signs
from memstate_core.revise.matching.comparison.sources import Origins, learn_origins
from memstate_core.revise.matching.comparison.title_formats import learn_formats
from memstate_core.revise.matching.earlier_merges import MERGED_LEVELS
from memstate_core.revise.matching.fit.fellegi_sunter import fit
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair
from tests.core.revise.matching.families import crowd
from tests.core.revise.matching.fits import fitted, shop


def test_pairs_within_a_duplicate_free_source_do_not_count_in_the_fit() -> None:
    whole = fitted(shop(), distinct=True)
    of, pairs = whole.of, whole.pairs.where(~whole.relations.same)
    assert 0 < len(pairs) < len(whole.pairs)
    plain = compare(of, pairs)
    member = learn_origins(of, pairs, plain.rankings, np.zeros(len(pairs), bool), np.zeros(len(of), np.int64)).member
    relations = Origins(member, np.zeros(member.shape[1])).relations(pairs)
    nothing = np.zeros(len(pairs), bool)
    model = fit(ranked(plain, pairs, ~nothing, len(of)), relations, nothing, empty(MERGED_LEVELS), 0)
    assert model.weights == whole.model.weights
    assert model.match_rate == whole.model.match_rate


@pytest.mark.parametrize(
    ("share", "differ"), [((1.0, 1.0), [True, True]), ((0.0, 1.0), [False, True]), ((0.0, 0.0), [False, True])]
)
def test_words_that_differ_by_one_edit_are_the_same_beside_a_duplicate_free_source(
    share: tuple[float, float], differ: list[bool]
) -> None:
    """Of a pair over two sources, and of one within a source that has duplicates."""
    of = corpus([
        {"title": "Oak bench", "sources": ["crm"]},
        {"title": "Oak bensh", "sources": ["erp"]},
        {"title": "Oak bunch", "sources": ["erp"]},
    ])  # fmt: skip
    pairs = every_pair(of).where(np.array([True, False, True]))
    member = learn_origins(of, pairs, np.zeros((1, 2)), np.zeros(2, bool), np.zeros(3, np.int64)).member
    origins = Origins(member, np.array(share))
    relations = origins.relations(pairs)
    formats = learn_formats(of, pairs, np.zeros(2), origins, relations)
    found = signs(of, pairs, compare(of, pairs).shared, formats, relations)
    assert found.title.tolist() == differ


def test_all_pairs_of_a_group_of_more_topics_than_neighbours_are_compared() -> None:
    count = 2 * NEIGHBOURS + 8
    copy = {"title": "Quartz lagoon harvest", "summary": "Signed at the harbour office"}
    result = dedupe([*(copy | {"id": f"a{number:02}"} for number in range(count)), *crowd(150)])
    copies = result.pairs.b < count
    assert copies.sum() == count * (count - 1) // 2
    assert len(result.scored.probability) == len(result.contradicts) == len(result.compared) == len(result.pairs)
    grouped = ~result.pairs.seen_by.any(axis=1)
    assert (copies & grouped).any()
    assert np.ptp(result.scored.probability[copies & grouped]) == 0
    assert result.grouped[copies].all()
