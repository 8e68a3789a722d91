"""Signs of pairs: those whose titles differ anyway need no others."""

from __future__ import annotations

import numpy as np
import pytest

from memstate_core.revise.matching.comparison import siblings
from tests.core.revise.matching.catalogues import catalogues
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import Topic, crowd, family, households, memories, store
from tests.core.revise.matching.fits import shop

ADDED: list[Topic] = [
    {"title": "Trip north", "summary": "Seven days by the river"},
    {"title": "Trip north amber", "summary": "Seven days by the river"},
    {"title": "Visit one copper", "summary": "Seen in the copper harbour"},
    {"title": "Visit one amber", "summary": "Seen in the copper harbour"},
]
"""The last two titles differ, but the summary states one of the words, so they show with the others what titles add."""
MADE: dict[str, list[Topic]] = {
    "a family and misspelt copies": store([*family("name", 0, 40), *crowd(60)], "typo").topics,
    "a family and abbreviated copies": store([*family("number", 1, 40), *crowd(60)], "abbreviation").topics,
    "memories in another order": store([*memories(), *crowd(40)], "order").topics,
    "a list in two sources": households(60, 3).topics,
    "two sources with small errors": shop(80),
    "recipes of two catalogues": catalogues("recipes", 2, size=120).topics,
    "titles of which a summary states the difference": [*ADDED, *crowd(60)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_signs_of_all_pairs_lead_to_the_same_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dedupe(MADE[name])
    settled: list[int] = []

    def none_settled(*given: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        differ = differing(*given)  # type: ignore[arg-type]
        settled.append(int(differ.sum()))
        return np.zeros_like(differ)

    differing = siblings._differ
    monkeypatch.setattr(siblings, "_differ", none_settled)
    every = dedupe(MADE[name])
    assert settled[0] > 100, "pairs whose titles differ"
    assert np.array_equal(found.contradicts, every.contradicts)
    assert np.array_equal(found.decision.probability, every.decision.probability)
    assert np.array_equal(found.expected, every.expected)
    assert np.array_equal(found.reworded, every.reworded)
    assert np.array_equal(found.groups, every.groups)
