"""Tokenisation of titles, and the overlap of two titles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.revise.matching.texts import tokens
from memstate_core.revise.matching.texts.tokens import folded, is_number, letter_groups, unit_groups, units, words
from memstate_core.revise.matching.texts.unit_overlap import Overlap, UnitIndex

COMMON = ["Alpha", "Beta", "Gamma"]
WRITTEN = [
    "007-",
    "01.",
    "01-May-2026",
    "Ballade",
    "a1",
    "\u00a8",
    "\u0301",
    "-",
    "_",
    "'",
    "/",
    " ",
    "\u2003",
    "\x1c",
    "\n",
]
"""What texts are made of that punctuation, white space or an accent of its own may cut or join."""


def overlap(one: str, other: str, *, numeric: bool = False) -> Overlap:
    """Of two titles, among unrelated ones."""
    index = UnitIndex([one, other, *COMMON])
    return index.overlap(np.array([0]), np.array([1]), numeric=numeric)


def conflicts(one: str, other: str) -> bool:
    return bool(overlap(one, other).conflict[0] > 0.01)


# Cutting


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", []),
        ("  -- !?", []),
        ("\U0001f680 \u2014", []),
        ("Acme renewal, Acme", ["acme", "renewal"]),
        ("Caf\u00e9 \uff21\uff23\uff2d\uff25", ["acme", "cafe"]),
        ("STRASSE stra\u00dfe", ["strasse"]),
        ("Sony KDL-40V4100/B (black)", ["b", "black", "kdl40v4100", "sony"]),
        ("well-known", ["known", "well"]),
        ("v1.2: 'beta'", ["beta", "v1.2"]),
        ("1.12 or 11.2", ["1.12", "11.2", "or"]),
        ("room_12", ["room12"]),
        ("007-Ballade, 01.Intro", ["1", "7", "ballade", "intro"]),
        ("24-inch 0-60 2026-05-01 01-May-2026", ["01may2026", "060", "20260501", "24inch"]),
    ],
)
def test_units_are_words_and_codes_without_their_punctuation(text: str, cut: list[str]) -> None:
    assert units(text) == cut


@given(st.lists(st.sampled_from(WRITTEN), max_size=12).map("".join) | st.text(max_size=24))
def test_units_of_a_text_are_those_of_its_parts_between_white_space(text: str) -> None:
    """Only then may what is kept of a part be used in another text."""
    uncached = tokens._units_of.__wrapped__
    assert units(text) == sorted(uncached(text))


def test_words_keep_their_order_and_repetition() -> None:
    assert words("Plan B, plan b!") == ["plan", "b", "plan", "b"]


def test_folding_drops_case_accents_and_compatibility_forms() -> None:
    assert folded("\u00c5ngstr\u00f6m \ufb01n") == "angstrom fin"


@pytest.mark.parametrize("unit", ["7", "a1", "ii", "iii", "iv", "ix", "xiv", "xxx", "kdl40v4100"])
def test_codes_and_roman_numerals_are_numbers(unit: str) -> None:
    assert is_number(unit)


@pytest.mark.parametrize("unit", ["", "i", "v", "x", "mix", "civil", "acme", "vim", "ivy"])
def test_words_and_single_letters_are_no_numbers(unit: str) -> None:
    assert not is_number(unit)


def test_letter_groups_mark_the_ends_of_words() -> None:
    assert letter_groups("ab c") == [" ab", "ab ", " c "]
    assert letter_groups("") == []
    assert unit_groups("ab") == (" a", "ab", "b ", " ab", "ab ")


# Comparing


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alpha 1.2", "Alpha 1.3"),
        ("Project A1", "Project A12"),
        ("Project A1000", "Project A10001"),
        ("Rocky II", "Rocky III"),
        ("Order 20231", "Order 20232"),
        ("Engine WFW8300SW", "Engine WFW8400SW"),
        ("Unit 7 rev 3", "Unit 7 rev 4"),
        ("Alice renewal", "Robert renewal"),
    ],
)
def test_different_numbers_or_words_conflict(one: str, other: str) -> None:
    assert conflicts(one, other)
    assert conflicts(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TV KDL-40V4100", "TV KDL40V4100"),
        ("Caf\u00e9 Zo\u00eb", "Cafe Zoe"),
        ("Acme renewal", "ACME  renewal!"),
        ("Acme", "Acme renewal 2024"),
        ("", "Acme renewal"),
        ("", ""),
    ],
)
def test_punctuation_accents_and_additions_of_one_side_are_no_conflict(one: str, other: str) -> None:
    assert not conflicts(one, other)


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        ("Renewals desk", "Renewal desk", "Invoices desk"),
        ("Washer WFW8300SW", "Washer WFW8300SWH", "Washer WFW8300SW1"),
        ("Washer WFW8300SW", "Washer WFW8300SWH", "Washer WFW8300ST"),
    ],
)
def test_variants_of_a_word_and_letters_appended_to_a_code_are_explained_in_part(one: str, near: str, far: str) -> None:
    variant, other = overlap(one, near), overlap(one, far)
    assert 0 < variant.conflict[0] < 0.5 * other.conflict[0]
    assert variant.shared[0] > 1.5 * other.shared[0]


def test_a_shared_unit_counts_the_more_the_fewer_titles_have_it() -> None:
    index = UnitIndex(["Quartz plan", "Quartz plan", *(f"Plan {word}" for word in ("one", "two", "three", "four"))])
    pairs = index.overlap(np.array([0, 2]), np.array([1, 3]))
    assert pairs.shared[0] > 2 * pairs.shared[1] > 0


def test_shared_and_what_each_says_beyond_add_up() -> None:
    same = overlap("Quartz plan 7", "Quartz plan 7")
    assert (same.only_a[0], same.only_b[0]) == (0, 0)
    longer = overlap("Quartz plan 7", "Quartz plan 7 draft")
    assert longer.only_a[0] == 0 < longer.only_b[0]
    assert longer.shared[0] == pytest.approx(same.shared[0], rel=1e-6)


def test_numbers_can_be_compared_alone() -> None:
    numbers, every = (overlap("Quartz 7", "Basalt 7", numeric=numeric) for numeric in (True, False))
    assert (numbers.shared[0] > 0, numbers.conflict[0]) == (True, 0)
    assert (every.shared[0], every.conflict[0] > 0) == (numbers.shared[0], True)


def test_the_order_of_a_pair_only_swaps_its_sides() -> None:
    titles = ["Acme renewal 7", "Acme renewals", "WFW8300SW", "WFW8300SWH II", "Renewal II", ""]
    a, b = np.triu_indices(len(titles), 1)
    there, back = UnitIndex(titles).overlap(a, b), UnitIndex(titles).overlap(b, a)
    np.testing.assert_allclose(there.shared, back.shared, atol=1e-6)
    np.testing.assert_array_equal(there.only_a, back.only_b)


@pytest.mark.parametrize("titles", [[], [""], ["", "!!"]])
def test_a_vocabulary_of_nothing_has_nothing_in_common(titles: list[str]) -> None:
    every = np.arange(len(titles))
    result = UnitIndex(titles).overlap(every, every)
    for part in (result.shared, result.only_a, result.only_b, result.conflict):
        np.testing.assert_array_equal(part, np.zeros(len(titles), np.float32))


def test_what_is_cut_of_a_word_is_kept_unless_it_is_longer_than_words_are() -> None:
    """A text without spaces, such as an encoded picture, is one word; 65,536 of them would fill the memory."""
    cut: list[str] = []
    count = tokens._kept(lambda word: cut.append(word) or len(word))
    usual, long = "w" * tokens._LONGEST, "w" * (tokens._LONGEST + 1)
    assert [count(word) for word in (usual, usual, long, long)] == [40, 40, 41, 41]
    assert cut == [usual, long, long]
    long_text = "a-b" * 50_000
    assert units(long_text) == units(f" {long_text} ")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u092e\u0940\u0928\u093e", "\u092e\u094b\u0928\u093e"),  # Meena and Mona
        ("\u0bae\u0bb0\u0bae\u0bcd", "\u0bae\u0bbe\u0bb0\u0bae\u0bcd"),
        ("\u0e44\u0e21\u0e48", "\u0e44\u0e21\u0e49"),  # not, and wood
    ],
)
def test_vowel_and_tone_signs_make_another_word(one: str, other: str) -> None:
    assert words(one) == [one] or words(one) == [folded(one)]
    assert units(one) != units(other)


def test_points_of_arabic_and_hidden_joiners_do_not() -> None:
    assert units("\u0643\u0650\u062a\u0627\u0628") == units("\u0643\u062a\u0627\u0628")
    assert units("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == units(
        "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"
    )


def test_a_point_before_a_number_is_a_decimal_point() -> None:
    assert units("Dose .5 mg") == units("Dose 0.5 mg") != units("Dose 5 mg")


def test_folding_is_the_same_for_plain_and_other_letters() -> None:
    assert folded("Caf\u00e9 \ufb01ne STRASSE") == "cafe fine strasse"
    assert folded("CAFE FINE") == "cafe fine"
