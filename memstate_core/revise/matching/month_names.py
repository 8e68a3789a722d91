"""Names of months in texts, of the Unicode locale data that `dateparser` carries; English ones also in short."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

import polars as pl

LANGUAGES = (
    "en", "cs", "da", "de", "es", "fi", "fr", "hu", "it", "nb", "nl", "pl", "pt", "ru", "sv", "tr", "uk",
)  # fmt: skip
"""Whose whole names are read. Short ones are words elsewhere: `set`, `out` and `mars` are months."""
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SHORTEST = 4
"""Letters from which a name that is not the longest of its month in a language counts as a whole one."""


def month(text: pl.Expr) -> pl.Expr:
    """The number of the first month that a text names; null without one."""
    names = _names()
    pattern = rf"(?i)\b({'|'.join(sorted(names, key=len, reverse=True))})\b"
    found = text.str.extract(pattern, 1).str.to_lowercase()
    return found.replace_strict([*names], [*names.values()], default=None, return_dtype=pl.Int64)


@cache
def _names() -> dict[str, int]:
    english = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
    return dict(named for language in LANGUAGES for named in _whole(language)) | english


def _whole(language: str) -> Iterator[tuple[str, int]]:
    known = import_module(f"dateparser.data.date_translation_data.{language}").info
    for number, month in enumerate(_MONTHS, 1):
        found = [name.lower() for name in known[month] if name.isalpha()]
        longest = max(map(len, found))
        yield from ((name, number) for name in found if len(name) >= _SHORTEST or len(name) == longest)
