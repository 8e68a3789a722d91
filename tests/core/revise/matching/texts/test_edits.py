"""Words that differ by one edit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.revise.matching.texts.edits import MIN_LETTERS, one_edit


def distance(one: str, other: str) -> int:
    """Edits between two words, swaps of neighbours included, by dynamic programming."""
    rows = [[*range(len(other) + 1)]]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, found in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != found))
            if i > 1 and j > 1 and (one[i - 2], letter) == (found, other[j - 2]):
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


@settings(max_examples=200)
@given(st.lists(st.text("abc", min_size=3, max_size=6), unique=True, max_size=12))
def test_the_pairs_are_those_of_a_distance_of_one(vocabulary: list[str]) -> None:
    long = [(place, word) for place, word in enumerate(vocabulary) if len(word) >= MIN_LETTERS]
    expected = {(a, b) for a, one in long for b, other in long if distance(one, other) == 1}
    found = list(zip(*(part.tolist() for part in one_edit(vocabulary)), strict=True))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_numbers_codes_and_short_words_have_no_misspellings() -> None:
    places, _ = one_edit(["1998", "1999", "ab12", "ab13", "red", "rex", "cafe", "café", "élan", "elan"])
    assert sorted(set(places.tolist())) == [6, 7, 8, 9]
