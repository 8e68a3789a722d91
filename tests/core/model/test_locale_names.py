"""Names of months, weekdays and units of time in many languages."""

from __future__ import annotations

import pytest

from memstate_core.model.locale_names import MONTHS, locale_names, whole_names


@pytest.mark.parametrize(
    ("language", "key", "names", "short"),
    [
        ("de", "march", {"m\u00e4rz"}, "mrz"),
        ("de", "may", {"mai"}, "m"),
        ("pt", "october", {"outubro"}, "out"),
        ("en", "monday", {"monday"}, "mon"),
    ],
)
def test_whole_names_are_those_without_abbreviations(language: str, key: str, names: set[str], short: str) -> None:
    found = whole_names(locale_names(language), key)
    assert names <= {*found}
    assert short not in found


def test_a_language_without_data_has_no_names() -> None:
    assert not locale_names("zz")
    assert whole_names(locale_names("zz"), MONTHS[0]) == []
