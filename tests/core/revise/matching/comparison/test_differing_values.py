"""Which values of a field name different things, and which are one written in two ways."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.comparison.differing_values import differing_fields
from tests.core.revise.matching.corpora import corpus, every_pair

DIFFERENT = [
    ("1234567890123456789", "1234567890123456788"),  # more digits than a float has
    ("0042", "42"),
    ("1e3", "1000"),
    ("v1.10", "v1.1"),
    ("1.2.3", "12.3"),
    ("10.1.11.1", "10.11.1.1"),
    ("37.5", "37.6"),
    ("71.2 kg", "71.3 kg"),
    ("19.99", "19.98"),
    ("2026-05-03T10:00:00Z", "2026-05-03T18:00:00Z"),
    ("2026-05-03 10:00", "2026-05-03 18:30"),
    ("2026-03-10 11:00 UTC", "Tue Mar 10 2026 11:00 AM EST"),
    ("Tue Mar 10 2026 11:00 AM EST", "Tue Mar 17 2026 11:00 AM EST"),
    ("2026-05-17T08:00:00+01:00", "Sun Jun 28 2026 02:00 AM EST"),
    ("Mar 10, 2026 5 PM", "2026-03-10 17:30"),
    ("03/04/2026", "04/03/2026"),
    ("1/15/2026 08:15 AM", "1/12/2026 08:15 AM"),  # the minutes are the other's day
    ("3/10/2026 11:00 AM", "2026-03-17 16:00 UTC"),
    ("Dienstag, 17. M\u00e4rz 2026 um 16:00 Uhr", "2026-03-10 16:00 UTC"),
    ("27.11.2026", "28. November 2026"),
    ("03/05/1935", "1935-05-04"),  # neither the third of May nor the fifth of March
    ("02/22/2026 6:30 PM", "2026-02-22 19:30"),
    ("10.0.26", "10.0.27"),
    ("85", "1986"),
    ("1h 42m", "103 min"),
    ("4:11", "4:10"),
    ("91", "1h 30m"),
    ("100 m", "100 s"),
    ("5 m", "5 min"),
    ("7pm", "18:00"),
    ("7pm", "7am"),
    ("18.30 Uhr", "17.30 Uhr"),
    ("M8162/59", "M8162/42"),
    ("v12.3b45", "v1.23b45"),
    ("120/80", "80/120"),
    ("\u00bd cup", "\u2153 cup"),
    ("World War II", "World War III"),
    ("Berlin to Paris", "Paris to Berlin"),
    ("not allergic", "allergic"),
    ("\u2605\u2605\u2605\u2605", "\u2605\u2605"),
    ("\u2192 home", "\u2190 home"),
    ("10%", "\u20ac10"),
    (".5 mg", "5 mg"),
    ("\u092e\u0940\u0928\u093e", "\u092e\u094b\u0928\u093e"),  # Meena and Mona
]
SAME = [
    ("8.10 %", "8.1%"),
    ("12.35", "12.3"),
    ("37.4971", "37.4972"),
    ("5 kg", "5kg"),
    ("1,200", "1200"),
    ("01", "1"),
    ("2.0", "2"),
    ("249.90", "249.9"),
    ("2026-05-03", "2026-05-03T00:00:00Z"),
    ("2026-05-03T10:00:00Z", "2026-05-03T12:00:00+02:00"),
    ("2026-05-03T10:00", "2026-05-03T12:00Z"),  # one without a zone
    ("2026-03-10T23:30:00-05:00", "2026-03-11T04:30:00Z"),
    ("2026-03-10 16:00 UTC", "Tue Mar 10 2026 11:00 AM EST"),
    ("2026-03-10 16:00", "Tue, 10 Mar 2026 11:00:00 -0500"),
    ("10-Mar-2026", "2026/3/10"),
    ("10. M\u00e4rz 2026", "2026-03-10"),
    ("10. August 2026", "10.08.26"),
    ("Do., 14.05.2026", "Thu 14 May 2026"),
    ("10 mai 2026", "2026.05.10"),
    ("2026\u5e743\u670810\u65e5", "2026-03-10"),
    ("07/07/1966", "1966-07-07"),
    ("03/05/1935", "1935-03-05"),
    ("03/05/1935", "1935-05-03"),
    ("02/22/2026 6:30 PM", "2026-02-22 18:30"),
    ("'94", "1994"),
    ("02", "2002"),
    ("5:35", "5m 35sec"),
    ("1h 42m", "102"),
    ("1h 42m", "102 min"),
    ("1 h", "60 min"),
    ("PT45M", "45 minutes"),
    ("369326", "6m 9sec"),  # milliseconds
    ("5.191", "5m 12sec"),  # minutes
    ("7pm", "19:00"),
    ("7:00", "7 pm"),
    ("6:30 PM", "18.30 Uhr"),
    ("pp. 116-127", "116--127"),
    ("MJ Carey", "Michael J. Carey"),
    ("VLDB", "Very Large Data Bases"),
    ("Leslie Cranston, Timothy Malkemus", "L Cranston, T Malkemus"),
    ("M8162/59", "m816259"),
    ("310/246-1501", "310.246.1501"),
    ("Smith, John", "John Smith"),
    ("Bruce Dickinson", "Dickinson Bruce"),
    ("in proceedings of the annual symposium on the theory", "in proceedings of the annual symposium on theory"),
]


def contradicts(one: str, other: str) -> bool:
    of = corpus([{"title": "What it is", "fields": {"value": text}} for text in (one, other)])
    found = differing_fields(of, of.value_pairs(np.array([0, 1]), np.array([1, 0])))
    (answer,) = set(found["contradicts"].to_list())
    return bool(answer)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_of_different_things(one: str, other: str) -> None:
    assert contradicts(one, other)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_of_one_thing(one: str, other: str) -> None:
    assert not contradicts(one, other)


@pytest.mark.parametrize("text", ["unknown", "N/A", " NULL ", "?", "k. A.", "desconocido"])
def test_what_says_that_there_is_no_value_is_none(text: str) -> None:
    of = corpus([{"title": "A song", "fields": {"language": value}} for value in (text, "French")])
    assert of.fields["text"].to_list() == ["French"]
    assert corpus([{"title": "Allergies", "fields": {"value": "none"}}]).fields.height == 1


def test_whether_values_contradict_does_not_depend_on_which_pairs_are_compared() -> None:
    """Whether letters are initials depends on how all values are written, in whichever block a pair is."""
    authors = ["MJ Carey", "Mary Jane Carey", *(f"{name} mj" for name in ("ana", "ben", "col"))]
    of = corpus([{"title": "Paper", "fields": {"author": author}} for author in authors])
    every = every_pair(of)
    whole = differing_fields(of, of.value_pairs(every.a, every.b))
    alone = differing_fields(of, of.value_pairs(np.array([0]), np.array([1])))
    assert whole.filter(pl.col("pair") == 0).equals(alone)
    assert alone["contradicts"].to_list() == [True]
    other = corpus([{"title": "Paper", "fields": {"author": author}} for author in authors[:2]])
    assert differing_fields(other, other.value_pairs(np.array([0]), np.array([1])))["contradicts"].to_list() == [False]
