"""Names of months, weekdays and units of time in many languages: the Unicode locale data that `dateparser` carries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
"""Their keys in the locale data, in order."""
SHORTEST = 4
"""The least number of letters of a name beside its longest form; shorter ones are abbreviations."""


def locale_names(language: str) -> Mapping[str, Any]:
    """The locale data of a language by its code; empty for a language without."""
    try:
        found: Mapping[str, Any] = import_module(f"dateparser.data.date_translation_data.{language}").info
    except ModuleNotFoundError as error:
        if error.name and not error.name.endswith(f".{language}"):
            raise
        return {}
    return found


def whole_names(names: Mapping[str, Any], key: str) -> list[str]:
    """The names of a month, weekday or unit without abbreviations, in lower case."""
    found = [name.lower() for name in names.get(key, [])]
    longest = max(map(len, found), default=0)
    return [name for name in found if len(name) >= SHORTEST or len(name) == longest]
