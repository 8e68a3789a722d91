"""Which words of a text abbreviate those of another one."""

from __future__ import annotations

import pytest

from memstate_core.revise.matching.arrays import incidence
from memstate_core.revise.matching.texts.abbreviations import known_units
from memstate_core.revise.matching.texts.tokens import units

ABBREVIATED = [
    ("Michael J. Carey", "MJ Carey"),
    ("Chee Yong Chan", "CY Chan"),
    ("Very Large Data Bases", "VLDB"),
    ("Very large data bases", "VLDB"),
    ("University of Toronto", "UT"),
    ("ACM Transactions", "ACM Trans."),
    ("Bishwaranjan Das", "B Das"),
]
OTHERS = [
    ("Michael J. Carey", "KM Carey"),
    ("Ian Troy", "it"),  # not in capitals
    ("Ann, Bob", "AB"),  # two of a list
    ("Very Large Data Bases", "VLDC"),
    ("One Two Three Four Five Six", "OTTFFS"),
    ("Das", "B"),
]


def lacking(whole: str, short: str) -> set[str]:
    """The units of a short text that a whole one does not know."""
    texts = [whole, short, "Sundry things in small letters"]
    cut = [units(text) for text in texts]
    vocabulary = sorted({unit for row in cut for unit in row})
    own = incidence(cut, {unit: place for place, unit in enumerate(vocabulary)})
    known = known_units(texts, own, vocabulary)
    return {vocabulary[place] for place in own[1].indices} - {vocabulary[place] for place in known[0].indices}


@pytest.mark.parametrize(("whole", "short"), ABBREVIATED)
def test_abbreviations_are_known(whole: str, short: str) -> None:
    assert lacking(whole, short) == set()


@pytest.mark.parametrize(("whole", "short"), OTHERS)
def test_other_words_are_not(whole: str, short: str) -> None:
    assert lacking(whole, short)


def test_capitals_in_texts_of_capitals_alone_are_no_initials() -> None:
    texts = ["Ian Troy", "IT IS", "IT WAS"]
    cut = [units(text) for text in texts]
    vocabulary = sorted({unit for row in cut for unit in row})
    own = incidence(cut, {unit: place for place, unit in enumerate(vocabulary)})
    assert "it" not in {vocabulary[place] for place in known_units(texts, own, vocabulary)[0].indices}
