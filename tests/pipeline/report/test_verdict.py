"""The verdict of a night in words, and how numbers and times read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memstate_pipeline.report.format import (
    NOT_KNOWN,
    counted,
    duration,
    listed,
    moment,
    number,
    score,
    verdict,
)
from tests.pipeline.report.nights import (
    summary,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("changes", "status", "title", "sentence"),
    [
        ({}, "good", "Published snapshot 12", "Nothing changed."),
        (
            {"counts": {"evidence": 1204, "topics_created": 1, "merges": 2, "archived": 0}},
            "good",
            "Published snapshot 12",
            "1,204 observations ingested, 1 topic created and 2 topics merged away.",
        ),
        ({"warnings": ["one"]}, "warn", "Published snapshot 12, with 1 warning", "Nothing changed."),
        (
            {"warnings": ["one"], "checks": [{"name": "c3", "passed": False, "severity": "WARN"}]},
            "warn",
            "Published snapshot 12, with 2 warnings",
            "Nothing changed.",
        ),
        (
            {"snapshot": None, "checks": [{"name": "c2", "passed": False, "severity": "ERROR"}]},
            "bad",
            "Refused to publish",
            "Check c2 failed, so snapshot 11 is still served. Held back: nothing changed.",
        ),
        (
            {
                "snapshot": None,
                "previous_snapshot": None,
                "counts": {"merges": 1},
                "checks": [{"name": name, "passed": False, "severity": "error"} for name in ("c1", "c2", "c4")],
            },
            "bad",
            "Refused to publish",
            "Checks c1, c2 and c4 failed, so nothing is served yet. Held back: 1 topic merged away.",
        ),
        (
            {"snapshot": None},
            "bad",
            "Not published",
            "This run published no snapshot; snapshot 11 is still served.",
        ),
    ],
)
def test_the_verdict(changes: dict[str, Any], status: str, title: str, sentence: str) -> None:
    answer = verdict(summary(**changes))
    assert (answer.status, answer.title, answer.sentence) == (status, title, sentence)


def test_numbers_in_words() -> None:
    assert [number(n) for n in (0, 1234567, 2.0, 1234.5, 0.0123, None, float("nan"))] == [
        "0", "1,234,567", "2", "1,234.50", "0.012", NOT_KNOWN, NOT_KNOWN,
    ]  # fmt: skip
    assert [score(n) for n in (0.97314, None)] == ["0.973", NOT_KNOWN]
    assert [duration(n) for n in (0.0421, 1.25, 59.99, 74.6, 7265)] == [
        "42 ms", "1.2 s", "60.0 s", "1 min 15 s", "2 h 1 min",
    ]  # fmt: skip
    assert [listed(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [counted("merges", 1), counted("merges", 0), counted("fields_seen", 2)] == [
        "topic merged away", "topics merged away", "fields seen",
    ]  # fmt: skip


def test_times_are_in_utc() -> None:
    assert moment("2026-04-22T04:00:00+02:00") == "2026-04-22 02:00 UTC"
    assert moment(datetime(2026, 4, 22, 2, tzinfo=UTC)) == "2026-04-22 02:00 UTC"
    assert moment("last night") == "last night"
    assert moment(None) == NOT_KNOWN
