"""Which times a question names from the moment at which it is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memstate_core.retrieve.query import STAGES, Question, answer
from memstate_core.retrieve.question.relative_dates import relative_spans
from tests.core.retrieve.conftest import Store, day

ASKED = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)  # a Thursday


def days(text: str, asked_at: datetime = ASKED) -> list[tuple[str, int]]:
    spans, _ = relative_spans(text, asked_at)
    return [(span.start.strftime("%Y-%m-%d"), (span.end - span.start).days) for span in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did I say yesterday?", [("2026-03-04", 1)]),
        ("last night", [("2026-03-04", 1)]),
        ("the day before yesterday", [("2026-03-03", 1)]),
        ("today or this morning", [("2026-03-05", 1), ("2026-03-05", 1)]),
        ("Who called last Tuesday?", [("2026-03-03", 1)]),
        ("last Thursday", [("2026-02-26", 1)]),
        ("this Thursday", [("2026-03-05", 1)]),
        ("on Friday", [("2026-02-27", 1)]),
        ("3 days ago", [("2026-03-02", 1)]),
        ("two weeks ago", [("2026-02-16", 7)]),
        ("a couple of months ago", [("2026-01-01", 31)]),
        ("a month ago", [("2026-02-01", 28)]),
        ("four months back", [("2025-11-01", 30)]),
        ("a year ago", [("2025-01-01", 365)]),
        ("last week", [("2026-02-23", 7)]),
        ("this week", [("2026-03-02", 7)]),
        ("last month and last year", [("2026-02-01", 28), ("2025-01-01", 365)]),
        ("in the past 10 days", [("2026-02-23", 11)]),
        ("in the last two weeks", [("2026-02-19", 15)]),
        ("9999 years ago", []),
        ("He lasts today's weekend; Sunday roast, week ago, last in line", [("2026-03-05", 1)]),
        ("When did she paint in May 2023?", []),
    ],
)
def test_relative_spans(text: str, expected: list[tuple[str, int]]) -> None:
    assert days(text) == expected


def test_a_day_is_that_of_the_moment_in_utc() -> None:
    late = datetime(2026, 3, 5, 23, tzinfo=timezone(timedelta(hours=-5)))
    assert days("yesterday", late) == [("2026-03-05", 1)]


def test_what_was_read_is_not_read_again_as_a_calendar_date() -> None:
    assert relative_spans("Was it last Tuesday or in May?", ASKED)[1].split() == ["Was", "it", "or", "in", "May?"]


@pytest.fixture
def gate(store: Store) -> Store:
    store.topic("yard")
    for on in (3, 20):
        store.says("yard", "The gate of the yard was painted.", on=on, actor="Ines", session_id=f"chat-{on}", turn=1)
    return store


@pytest.mark.parametrize(("asked_on", "first"), [(4, 3), (21, 20)])
def test_yesterday_is_the_day_before_the_question(gate: Store, opened, asked_on: int, first: int) -> None:
    for how in ({"asked_at": day(asked_on)}, {"asked_at": day(28), "as_of": day(asked_on)}):
        question = Question("What was painted yesterday?", ("user:a",), explain=True, **how)
        best = answer(opened(gate), gate.encoder, None, question)["evidence"][0]
        assert best["observed_at"].startswith(f"{day(first):%Y-%m-%d}")
        assert best["explain"]["parts"]["date"] == 2.0


@pytest.mark.parametrize("how", [{}, {"asked_at": day(4), "stages": STAGES - {"temporal"}}])
def test_without_a_moment_or_the_stage_no_time_counts(gate: Store, opened, how) -> None:
    question = Question("What was painted yesterday?", ("user:a",), explain=True, **how)
    found = answer(opened(gate), gate.encoder, None, question)["evidence"]
    assert {each["explain"]["parts"].get("date", 0.0) for each in found} == {0.0}
