"""Events that recur are apart by their times alone, in whatever formats a program writes these."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import Store
from tests.core.revise.matching.namesakes import counted_pairs

Format = Callable[[datetime], str]
FORMS, PLACES = ("Review", "Planning", "Interview", "Lunch"), ("Berlin", "Kyoto", "Lima")
GERMAN = ("Januar", "Februar", "M\u00e4rz", "April", "Mai", "Juni", "Juli", "August", "September")


def utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def eastern(at: datetime) -> str:
    return f"{at - timedelta(hours=5):%a %b %d %Y %I:%M %p} EST"


def by_slashes(at: datetime) -> str:
    local = at - timedelta(hours=5)
    return f"{local.month}/{local.day}/{local.year} {local:%I:%M %p}"


def in_german(at: datetime) -> str:
    local = at + timedelta(hours=1)
    return f"Termin am {local.day}. {GERMAN[local.month - 1]} {local.year} um {local:%H:%M} Uhr"


FORMATS = {"eastern": eastern, "by slashes": by_slashes, "in German": in_german}


def calendar(seed: int, other: Format, series: int = 90) -> Store:
    """Series of events, of which a third is noted again; the time is in one of two formats each time."""
    chance, event = Random(seed), count()
    sounds = [one + vowel for one in "bdfgklmnprst" for vowel in "aeiou"]
    topics: list[dict[str, Any]] = []
    things: list[int] = []
    for _ in range(series):
        name, host = ("".join(chance.choices(sounds, k=3)).title() for _ in range(2))
        first = datetime(2026, 1, 5, chance.randrange(12, 20), tzinfo=UTC) + timedelta(days=chance.randrange(200))
        common = {"host": host, "place": chance.choice(PLACES)}
        said = {"title": f"{name} {chance.choice(FORMS)}", "summary": f"Bring the figures of {name} and {host}"}
        for week in range(chance.choice((1, 1, 2, 4))):
            thing, at = next(event), first + timedelta(days=7 * week)
            for _ in range(1 if chance.random() < 0.67 else 2):
                topics.append({**said, "fields": {**common, "start": chance.choice((utc, other))(at)}})
                things.append(thing)
    return Store(topics, things)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("other", FORMATS.values(), ids=FORMATS)
def test_events_of_one_series_stay_apart(other: Format, seed: int) -> None:
    made = calendar(seed, other)
    merged, right = counted_pairs(made, dedupe(made.topics).groups)
    assert merged == right


@pytest.mark.parametrize("seed", range(3))
def test_an_event_in_two_known_formats_is_one(seed: int) -> None:
    made = calendar(seed, eastern, series=500)
    sizes = np.bincount(made.things)
    _, right = counted_pairs(made, dedupe(made.topics).groups)
    assert right >= 0.9 * int((sizes * (sizes - 1) // 2).sum())
