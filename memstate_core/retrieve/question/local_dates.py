"""Dates in questions in other languages than English, as time spans.

Names of months and weekdays and phrases such as *gestern* or *semana passada* come from the Unicode locale data that
`dateparser` carries; its own parser is not called, since it reads words such as *do*, *so* and *mai* as dates. What is
read here has a form that only dates have: a day beside the whole name of a month, a month with a year, a phrase
of the locale data that has one meaning. A month alone and weekdays need the words around them, so they are read in the
languages of `WORDS` only. Chinese has a module of its own.

A word that looks like a date but is none must not move evidence: in doubt, nothing is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memstate_core.model.locale_names import MONTHS, SHORTEST, locale_names, whole_names
from memstate_core.retrieve.question.chinese_dates import CHINESE_FORMS
from memstate_core.retrieve.question.date_forms import (
    Asked,
    Form,
    Read,
    Span,
    calendar_spans,
    read,
    relative,
    unit_span,
    weekday_span,
)
from memstate_core.retrieve.question.question_language import CHINESE, languages_of

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = ("day", "week", "month", "year")
_LINK = r"(?:\s*(?:de|del|do|di|d['\u2019])\b)?\s*"
_DAY = r"(?P<day>[0-3]?\d)"
_ORDINAL = r"(?:\.|º|er)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_KEY = re.compile(r"(?P<count>\\1|\d+) (?P<unit>day|week|month|year) ago")
_NUMBER = r"(\d++[.,]?\d*+)"
"""How the locale data write a count in a pattern."""


@dataclass(frozen=True)
class Words:
    """Words of a language that stand around names in dates, as regular expressions.

    Attributes:
        to_month: before a month without a day or year.
        last: before a weekday or a unit that is past.
        passed: the same after it.
        this: before a weekday of this week.
        on: before the whole name of a weekday, and before a day and a month in digits.
        ordinal: what follows the number of a day.
        counts: numerals beside those of the locale data.
    """

    to_month: str
    last: str
    passed: str
    this: str
    on: str
    ordinal: str
    counts: Mapping[str, int] = field(default_factory=dict)


_NEVER = r"(?!)"
WORDS = {
    "de": Words(
        to_month="im|seit|anfang|mitte|ende|letzten|vergangenen|diesen",
        last="(?:am )?(?:letzt|vergangen|vorig)e[nrs]?",
        passed=_NEVER,
        this="diese[nrs]?",
        on="am",
        ordinal=r"\.",
    ),
    "pt": Words(
        to_month="em|desde|durante|no mês de",
        last="(?:n?[oa] )?últim[oa]",
        passed="passad[oa]",
        this="n?est[ea]",
        on="n[oa]",
        ordinal="º?",
        counts={"dois": 2, "duas": 2, "três": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7, "oito": 8},
    ),
}
"""Languages in which these words were checked."""


def local_spans(text: str, asked_at: datetime | None, years: list[int]) -> tuple[list[Span], str]:
    """The spans of time that a question in another language than English names, and the text without them.

    Args:
        text: a question; nothing is read from one in English.
        asked_at: the time of asking, timezone-aware, to which relative dates refer; they are ignored if it is None.
        years: the candidate years of a date without one.
    """
    midnight = asked_at and asked_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spans: list[Span] = []
    for language in languages_of(text):
        found, text = read(text, _forms(language), Asked(midnight, years))
        spans += found
    return spans, text


@lru_cache
def _forms(language: str) -> list[Form]:
    if language == CHINESE:
        return CHINESE_FORMS
    names = locale_names(language)
    if not names:
        return []
    words = WORDS.get(language)
    forms = [*_calendar(names, words), *_phrases(names), *_counted(names, words)]
    return [*forms, *(_around(names, words) if words else [])]


def _calendar(names: Mapping[str, Any], words: Words | None) -> Iterator[Form]:
    months = _numbered(names, MONTHS)
    month = _group("month", months)

    def named(found: re.Match[str], asked: Asked) -> Iterable[Span]:
        month = months[found["month"].lower()]
        return calendar_spans(_integer(found, "year"), month, _integer(found, "day"), asked.years)

    def numeric(found: re.Match[str], asked: Asked) -> Iterable[Span]:
        return calendar_spans(_integer(found, "year"), int(found["number"]), int(found["day"]), asked.years)

    ordinal = words.ordinal if words else _ORDINAL
    yield _form(rf"\b{_DAY}{ordinal}{_LINK}{month}(?:,?{_LINK}{_YEAR})?\b", named)
    if names.get("date_order") == "DMY":
        yield _form(rf"\b(?P<day>[0-3]?\d)([./-])(?P<number>[01]?\d)\2{_YEAR}\b", numeric)
    yield _form(rf"\b{month}{_LINK}{_YEAR}\b", named)
    if words:
        yield _form(rf"\b(?:{words.to_month}) {month}\b", named)
        yield _form(rf"\b(?:{words.on}) {_DAY}\.(?P<number>[01]?\d)\.(?!\d)", numeric)


def _integer(found: re.Match[str], name: str) -> int | None:
    given = found.groupdict().get(name)
    return int(given) if given else None


def _phrases(names: Mapping[str, Any]) -> Iterator[Form]:
    """Phrases of one meaning: *yesterday*, *last week*; some languages say *yesterday* and *tomorrow* alike."""
    said = names.get("relative-type", {})
    meanings = Counter(phrase for phrases in said.values() for phrase in phrases)
    for key, phrases in said.items():
        found = _KEY.fullmatch(key)
        certain = [phrase for phrase in phrases if meanings[phrase] == 1 and len(phrase) >= SHORTEST]
        if found and certain:
            yield _form(rf"\b{_group('phrase', certain)}\b", relative(_back(found["unit"], int(found["count"]))))


def _back(unit: str, ago: int) -> Callable[[re.Match[str], datetime], Span]:
    return lambda _, midnight: unit_span(unit, midnight, ago)


def _counted(names: Mapping[str, Any], words: Words | None) -> Iterator[Form]:
    counts = _counts(names) | (dict(words.counts) if words else {})
    count = rf"(?P<count>\d{{1,4}}{''.join(f'|{re.escape(word)}' for word in counts)})"

    def spans(unit: str) -> Read:
        def span(found: re.Match[str], midnight: datetime) -> Span:
            given = found["count"].lower()
            return unit_span(unit, midnight, counts.get(given) or int(given))

        return relative(span)

    for key, patterns in names.get("relative-type-regex", {}).items():
        found = _KEY.fullmatch(key)
        for pattern in sorted(patterns, key=len, reverse=True) if found else []:
            if pattern.count("(") == 1 and _NUMBER in pattern:
                yield _form(rf"\b{pattern.replace(_NUMBER, count)}\b", spans(found["unit"]))  # type: ignore[index]


def _counts(names: Mapping[str, Any]) -> dict[str, int]:
    """The numerals that the locale data replace by digits."""
    said = {word.lower(): digits for each in names.get("simplifications", []) for word, digits in each.items()}
    return {word: int(digits) for word, digits in said.items() if word.isalpha() and str(digits).isdigit()}


def _around(names: Mapping[str, Any], words: Words) -> Iterator[Form]:
    """Weekdays and units with the words before or after them."""
    days, units = _numbered(names, _WEEKDAYS), {name: unit for unit in _UNITS for name in whole_names(names, unit)}
    longest = {max(whole_names(names, day), key=len): number for number, day in enumerate(_WEEKDAYS)}

    def weekday(*, today: bool) -> Read:
        return relative(lambda found, now: weekday_span(now, days[found["name"].lower()], today=today))

    def unit(found: re.Match[str], midnight: datetime) -> Span:
        return unit_span(units[found["name"].lower()], midnight, 1)

    for known, past in ((units, relative(unit)), (days, weekday(today=False))):
        yield _form(rf"\b(?:{words.last}) {_group('name', known)}\b", past)
        yield _form(rf"\b{_group('name', known)} (?:{words.passed})\b", past)
    yield _form(rf"\b(?:{words.this}) {_group('name', days)}\b", weekday(today=True))
    yield _form(rf"\b(?:{words.on}) {_group('name', longest)}\b", weekday(today=False))


def _numbered(names: Mapping[str, Any], keys: Iterable[str]) -> dict[str, int]:
    return {name: at for at, key in enumerate(keys, 1 if "january" in keys else 0) for name in whole_names(names, key)}


def _group(name: str, words: Iterable[str]) -> str:
    return rf"(?P<{name}>{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})"


def _form(pattern: str, reading: Read) -> Form:
    return re.compile(pattern, re.IGNORECASE), reading
