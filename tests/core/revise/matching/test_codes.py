"""Codes that two sources write differently, and siblings of which each of two sources has one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.texts.codes import TitleCodes, whole_code
from tests.core.revise.matching.comparison.test_title_formats import contradicted, found_among, merged_share

Topic = dict[str, Any]
APART = (
    ("Deal with {} 2025", "Deal with {} 2026"),
    ("Trip of {} in spring", "Trip of {} in autumn"),
    ("Chair {} black", "Chair {} white"),
    ("First child of {}", "Second child of {}"),
    ("{} prefers tea", "{} prefers coffee"),
    ("{} for windows", "{} for mac"),
    ("Chair {} KX1010B", "Chair {} KX1010W"),
    ("Chair {} KX1010/B black", "White chair {} KX-1010 W"),
    ("{} studio version", "{} live version"),
)
"""What one source says of a thing and the other of its sibling."""


def shared(one: str, other: str, *others: str) -> tuple[bool, bool]:
    """Whether two titles share a code, and whether one adds letters to the code of the other."""
    index, a, b = TitleCodes([one, other, *others]), np.array([0]), np.array([1])
    return bool(index.shared(a, b)[0]), bool(index.stems(a, b)[0])


@pytest.mark.parametrize(
    ("one", "other", "code", "stem"),
    [
        ("Camera KDL46Z4100/B", "Camera KDL46Z4100B", True, True),
        ("Camera SX110 IS", "Camera SX110IS", True, True),
        ("Camera SX110", "Camera SX110IS", False, True),
        ("Card SDV02GU1A", "Card RP-SDV02GU1A", False, True),
        ("Camera SX110B", "Camera SX110W", False, False),
        ("Camera SX110", "Camera SX1101", False, False),
        ("Invoice 1 2024", "Invoice 12024", False, False),
        ("Router X20", "Router X20B", False, False),
        ("Sprint 18", "Sprint 18b", False, False),
        ("Order 1136512", "Parcel 1136512", True, True),
        ("Phone PR-1800/B", "Phone PR-1800/W", False, False),
        ("Phone PR-1800/B", "Phone PR1800-B", True, True),
        ("Phone PR1800 B", "Phone PR-1800/B", True, True),
        ("Phone PR1800 B", "Phone PR-1800 W", False, False),
        ("Phone PR-1800/B", "Phone PR1800W", False, False),
        ("Phone PR-1800/B", "Phone PR1800", False, True),
        ("Phone PR-1800/SS in white", "Phone PR-1800 in white", False, True),
        ("Phone PR-1800/white", "Phone PR-1800/black", True, True),
        ("Phone PR-1800/2", "Phone PR-1800/3", True, True),
        ("Flat of 1136.51 m²", "House of 1136.51 m²", False, False),
    ],
)
def test_a_code_is_the_same_in_two_parts_and_with_letters_added(one: str, other: str, code: bool, stem: bool) -> None:
    assert shared(one, other, "Tripod") == shared(other, one, "Tripod") == (code, stem)


def test_a_code_that_a_third_title_extends_names_no_pair() -> None:
    assert shared("Camera SX110", "Camera SX110B", "Camera SX110W") == (False, False)


def test_codes_of_other_endings_are_codes_of_their_own() -> None:
    others = ("Phone PR-1800/W", "White phone PR1800W")
    assert shared("Phone PR-1800/B", "Black phone PR1800B", *others) == (True, True)
    assert shared(*others, "Phone PR-1800/B", "Black phone PR1800B") == (True, True)


def test_a_word_of_any_length_is_cut_in_no_time() -> None:
    assert shared("1a" * 50_000, "1a" * 50_000 + "b") == (False, False)


def catalogue(count: int) -> list[list[Topic]]:
    """Products of two shops, of which one writes codes in two parts or adds letters, and says something else."""
    chance, things = random.Random(17), []
    stock = ["".join(chance.choices("bdfgklmnprstaeiou", k=7)) for _ in range(5 * count)]
    for number in range(count):
        code, words = f"K{chance.choice('LMNP')}{1000 + 7 * number}", chance.sample(stock, 4)
        written = (f"{code}/B", f"RP-{code}", code)[number % 3]
        plain = (f"{code}B", code, f"{code}WH")[number % 3]
        things.append([
            {"title": f"{' '.join(words[:3])} - {plain}", "sources": ["crm"]},
            {"title": f"{' '.join([*words[:2], words[3]])} {written}", "sources": ["list"]},
        ])  # fmt: skip
    return things


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("WJC-328", "wjc328"),
        ("wjc328/B", "wjc328b"),
        ("WJC 328", None),
        ("1136512", None),
        ("red", None),
        ("wjc328 in red", None),
        ("wjc328, wjc367", None),
        ("12.50m", None),
        ("", None),
    ],
)
def test_a_value_that_is_one_code(text: str, code: str | None) -> None:
    assert whole_code(text) == code


@pytest.mark.parametrize(("other", "same"), [("wjc{}w", False), ("wjc{}b", True)])
def test_a_code_of_a_series_in_titles_does_not_outweigh_codes_of_models_in_fields(other: str, same: bool) -> None:
    """Each shop lists one model of each series, and no third title has the series; of a quarter it is another one."""
    chance, things = random.Random(29), list[list[Topic]]()
    stock = ["".join(chance.choices("bdfgklmnprstaeiou", k=7)) for _ in range(40)]
    for number in range(160):
        words, quarter = " ".join(chance.sample(stock, 2)), number % 4 == 0
        models = ("WJC-{}/B", other if quarter else "wjc{}b")
        sold = [
            {"title": f"{words} LX{900 + number}K{adds}", "fields": {"model": model.format(300 + number)}}
            for adds, model in zip(("", " small"), models, strict=True)
        ]
        sold = [{**each, "sources": [shop]} for each, shop in zip(sold, ("crm", "list"), strict=True)]
        things += [[each] for each in sold] if quarter and not same else [sold]
    found, known, wrong = found_among([*catalogue(150), *things])
    assert found.origins.distinct.all()
    assert wrong == 0
    assert merged_share(found, known) > 0.8


@pytest.mark.parametrize("pairs", [1, 12])
def test_codes_written_differently_are_found_and_siblings_of_two_sources_stay_apart(pairs: int) -> None:
    chance, siblings = random.Random(23), []
    for number in range(pairs * len(APART)):
        name = " ".join("".join(chance.choices("bdfgklmnprstaeiou", k=8)) for _ in range(2))
        common = {"summary": f"What was said about {name}", "fields": {"owner": "Aya", "price": 129}}
        titles = zip(APART[number % len(APART)], ("crm", "list"), strict=True)
        siblings += [[{"title": title.format(name), "sources": [source]} | common] for title, source in titles]
    found, known, wrong = found_among([*catalogue(150), *siblings])
    assert found.origins.distinct.all()
    assert wrong == 0
    assert contradicted(found, known) == 0
    assert merged_share(found, known) > 0.8
