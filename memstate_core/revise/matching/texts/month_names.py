"""Names of months in texts, whole ones in several languages and English ones also in short."""

from __future__ import annotations

from functools import cache

import polars as pl

from memstate_core.model.locale_names import MONTHS, locale_names, whole_names

LANGUAGES = (
    "en", "cs", "da", "de", "es", "fi", "fr", "hu", "it", "nb", "nl", "pl", "pt", "ru", "sv", "tr", "uk",
)  # fmt: skip
"""Whose whole names are read. Short ones are words elsewhere: `set`, `out` and `mars` are months."""


def month(text: pl.Expr) -> pl.Expr:
    """The number of the first month that a text names; null without one."""
    numbers = _numbers()
    pattern = rf"(?i)\b({'|'.join(sorted(numbers, key=len, reverse=True))})\b"
    found = text.str.extract(pattern, 1).str.to_lowercase()
    return found.replace_strict([*numbers], [*numbers.values()], default=None, return_dtype=pl.Int64)


@cache
def _numbers() -> dict[str, int]:
    """The number of the month by its names."""
    english = {key[:3]: number for number, key in enumerate(MONTHS, 1)} | {"sept": 9}
    known = (locale_names(language) for language in LANGUAGES)
    whole = (
        (name, number) for names in known for number, key in enumerate(MONTHS, 1) for name in whole_names(names, key)
    )
    return {name: number for name, number in whole if name.isalpha()} | english
