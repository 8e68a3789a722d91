"""The bound between present and future, where the calendar ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memstate_core.ingest.reasons import Rejection
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.policy.settings import Settings

NOW = datetime(2026, 4, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("before_the_end", [timedelta(0), timedelta(days=30), timedelta(days=31)])
def test_near_the_end_of_the_calendar_every_time_is_past_or_present(before_the_end: timedelta) -> None:
    clock = Clock.at(LAST - before_the_end, Settings())
    assert clock.latest == LAST
    assert clock.spelling("9999-12-31T23:59:59Z", "$.observed_at") == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-04-24T23:59:60Z", "leap seconds and 24:00 are valid but not supported"),
        ("2026-04-24T24:00:00Z", "leap seconds and 24:00 are valid but not supported"),
        ("20260424T2400+0200", "leap seconds and 24:00 are valid but not supported"),
        ("9999-12-31T23:59:59-12:00", "within the years 1 to 9999 in UTC"),
        ("0001-01-01T00:00:00+12:00", "within the years 1 to 9999 in UTC"),
        ("2026-04-24T23:61:60Z", "an ISO 8601 time such as"),
        ("tomorrow", "an ISO 8601 time such as"),
    ],
)
def test_a_valid_time_that_is_not_supported_is_called_so(text: str, expected: str) -> None:
    with pytest.raises(Rejection) as refused:
        Clock.at(NOW, Settings()).spelling(text, "$.observed_at")
    assert refused.value.detail.startswith(f"$.observed_at is {text!r}, expected ")
    assert expected in refused.value.detail


def test_elsewhere_the_bound_is_that_of_the_settings() -> None:
    clock = Clock.at(NOW, Settings())
    assert clock.latest == NOW + timedelta(days=31)
    with pytest.raises(Rejection, match="no later than 2026-05-02T00:00:00Z; a larger ingest"):
        clock.spelling("2026-05-03T00:00:00Z", "$.observed_at")
