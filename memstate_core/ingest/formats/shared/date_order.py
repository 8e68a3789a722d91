"""Decides for a whole file, from all its dates, which number of a written date is the day."""

from __future__ import annotations

from datetime import UTC, datetime

_CENTURY = 2000
DAY_FIRST, MONTH_FIRST = "day first", "month first"

Written = tuple[int, int, int]
"""The three numbers of a date as written."""


class DateOrder:
    """Evidence of the order from the dates seen so far: values above 12, and steps back in time."""

    def __init__(self) -> None:
        self._above = {DAY_FIRST: 0, MONTH_FIRST: 0}
        self._steps_back = {DAY_FIRST: 0, MONTH_FIRST: 0}
        self._last: Written | None = None

    def see(self, date: Written) -> None:
        """Adds the next date of the file; a date with the year first is unambiguous and ignored."""
        if date[0] > 31 or date == self._last:
            return
        self._above[DAY_FIRST] += date[0] > 12
        self._above[MONTH_FIRST] += date[1] > 12
        if self._last is not None:
            for order in self._steps_back:
                self._steps_back[order] += ordered(date, order) < ordered(self._last, order)
        self._last = date

    def decided(self) -> tuple[str, str | None]:
        """The order, and a remark on it unless values above 12 alone decide it."""
        day, month = self._above[DAY_FIRST], self._above[MONTH_FIRST]
        if day != month:
            order = DAY_FIRST if day > month else MONTH_FIRST
            return order, _ambiguous(order, "as most values above 12 say") if day and month else None
        if self._steps_back[DAY_FIRST] != self._steps_back[MONTH_FIRST]:
            order = min(self._steps_back, key=self._steps_back.__getitem__)
            return order, _ambiguous(order, "since the messages go back in time less often then")
        return DAY_FIRST, _ambiguous(DAY_FIRST, "since nothing in the file decides") if self._last else None


def _ambiguous(order: str, why: str) -> str:
    return f"the dates are ambiguous: read as {order}, {why}"


def ordered(date: Written, order: str) -> Written:
    """Year, month and day."""
    one, two, three = date
    if one > 31:
        return date
    year = three + _CENTURY * (three < 100)
    return (year, two, one) if order == DAY_FIRST else (year, one, two)


def moment_of(date: Written, time: Written, order: str) -> datetime | None:
    """The time, taken as UTC since no zone is written; None if there is no such day or hour."""
    try:
        return datetime(*ordered(date, order), *time, tzinfo=UTC)
    except ValueError:
        return None
