"""Dates, times of the day and zones in the text of field values, in the usual ways of writing them.

`2026-03-10T16:00Z`, `2026/3/10 16:00`, `10 March 2026`, `10. März 2026`, `10.03.26`, `2026年3月10日`, `Tue, 10 Mar 2026
11:00:00 -0500` and `Mar 10, 2026 11 AM EST`. Of `03/10/2026` nothing says which number is the month, so it has two
readings unless one is no date; it is another day than a date that equals neither.
"""

from __future__ import annotations

import polars as pl

from memstate_core.revise.matching.texts.month_names import month
from memstate_core.revise.matching.texts.typed_values import both

_ISO = r"^(\d{4})(?:-|/|\.)(\d{1,2})(?:-|/|\.)(\d{1,2})(?:$|[T ])"
_EASTERN = r"^(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]"
_WEEKDAY = r"^(?:\p{L}{2,10}\.?,?\s+)?"
_DOTTED = _WEEKDAY + r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2})(?:$|[\s,])"
_EITHER = _WEEKDAY + r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})(?:$|[T\s,])"
"""Two numbers of which either may be the month."""
_LONGEST = 32
"""Characters, beside the time of the day, of a text that is a date with a month's name."""
_PIVOT = 70
"""Years of two digits from here on are of the last century."""
_CLOCK = (
    r"(?i)(?:^|[T\s])(\d{1,2})(?:[:.](\d{2})\s*uhr|\s*uhr"
    r"|:(\d{2})(?::\d{2}(?:\.\d+)?)?(?:\s*([ap])\.?m\b\.?)?|\s*([ap])\.?m\b\.?)"
)
_OFFSET = r"(?i)\d(?:\s*[ap]\.?m\b\.?)?\s*(?:utc|gmt)?\s*([+-])(\d{2}):?(\d{2})(?:$|\s)"
_ZONE = r"(?i)\d(?:\s*[ap]\.?m\b\.?)?\s*(z|utc?|gmt|[ecmp][sd]t)(?:$|\s)"
_HOURS_BEHIND = {"est": 5, "edt": 4, "cst": 6, "cdt": 5, "mst": 7, "mdt": 6, "pst": 8, "pdt": 7}
"""Zones of North America (RFC 2822, section 4.3); others that have a name only are Greenwich's."""
_ALONE = r"(?i)^\d{1,2}(?:[:.]\d{2}\s*uhr|\s*uhr|:\d{2}(?::\d{2})?\s*(?:[ap]\.?m\.?)?|\s*[ap]\.?m\.?)$"
_OF_DAY = r"(?i)(?:m\.?|uhr)$"
"""How a text ends that can only be a time of the day; `4:15` may be a duration."""
HALF_DAY = 12 * 60
"""Minutes."""


def day(text: pl.Expr) -> pl.Expr:
    """Days since 1970 of a text that is or begins with a date of one reading; null without one."""
    month_first, day_first = _readings(text)
    either = pl.when(month_first.is_null() | day_first.is_null() | (month_first == day_first)).then(
        pl.coalesce(month_first, day_first)
    )
    return pl.coalesce(_certain(text), either).cast(pl.Float64)


def _certain(text: pl.Expr) -> pl.Expr:
    """Days since 1970 of a text that begins with the year, has points, or names the month."""
    forms = (_ISO, (1, 2, 3)), (_EASTERN, (1, 2, 3)), (_DOTTED, (3, 2, 1))
    return pl.coalesce(*(_date(*_numbers(text, form, groups)) for form, groups in forms), _named(text))


def _readings(text: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Days since 1970 of a text such as `03/10/2026`, with the month first and with the day first."""
    return _date(*_numbers(text, _EITHER, (3, 1, 2))), _date(*_numbers(text, _EITHER, (3, 2, 1)))


def _numbers(text: pl.Expr, form: str, groups: tuple[int, int, int]) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Year, month and day."""
    year, month, day = (text.str.extract(form, group).cast(pl.Int64, strict=False) for group in groups)
    return year, month, day


def _date(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    century = pl.when(year < _PIVOT).then(2000).when(year < 100).then(1900).otherwise(0)
    parts = (part.cast(pl.String).str.zfill(size) for part, size in ((year + century, 4), (month, 2), (day, 2)))
    return pl.concat_str(*parts, separator="-").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32)


def _named(text: pl.Expr) -> pl.Expr:
    """Days since 1970 of a short text with the name of a month and two numbers."""
    date = text.str.replace(_CLOCK + r"(?:\s*(?:utc|gmt)?\s*[+-]\d{2}:?\d{2}(?:$|\s))?", " ")
    numbers = date.str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64, strict=False))
    two = (numbers.list.len() == 2) & (date.str.len_chars() <= _LONGEST)
    first, last = numbers.list.get(0, null_on_oob=True), numbers.list.get(1, null_on_oob=True)
    valid = two & first.is_between(1, 31) & (last < 10_000)
    return pl.when(valid).then(_date(last, month(date), first))


def clock(text: pl.Expr) -> pl.Expr:
    """Minutes since the beginning of the day of a text that is a date with a time; null without one, or at midnight.

    With a date alone, many write midnight.
    """
    minutes = _minutes(text)
    return pl.when(minutes.is_between(1, 24 * 60 - 1)).then(minutes)


def _minutes(text: pl.Expr) -> pl.Expr:
    """Minutes since the beginning of the day of the time in a text; null without one."""
    hour = text.str.extract(_CLOCK, 1).cast(pl.Int64, strict=False)
    minute = pl.coalesce(text.str.extract(_CLOCK, 2), text.str.extract(_CLOCK, 3)).cast(pl.Int64, strict=False)
    half = pl.coalesce(text.str.extract(_CLOCK, 4), text.str.extract(_CLOCK, 5)).str.to_lowercase()
    of_day = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + pl.when(half == "p").then(12).otherwise(0))
    return of_day * 60 + minute.fill_null(0)


def zone(text: pl.Expr) -> pl.Expr:
    """Minutes by which the zone of a time is ahead of Greenwich; null without one."""
    hours, minutes = (text.str.extract(_OFFSET, group).cast(pl.Int64, strict=False) for group in (2, 3))
    sign = pl.when(text.str.extract(_OFFSET, 1) == "-").then(-1).otherwise(1)
    name = text.str.extract(_ZONE, 1).str.to_lowercase()
    behind = name.replace_strict(_HOURS_BEHIND, default=0, return_dtype=pl.Int64)
    return pl.coalesce(sign * (hours * 60 + minutes), pl.when(name.is_not_null()).then(-60 * behind))


def times(text: pl.Expr) -> list[pl.Expr]:
    """What `other_time` and `other_clock` compare of a text: month_first, day_first, clock, zone, alone and of_day.

    The first two are the readings of a date, equal if it has one; alone are the minutes of a time without a date, and
    of_day whether the text says that it is one.
    """
    certain, alone = day(text), text.str.contains(_ALONE)
    month_first, day_first = (pl.coalesce(certain, reading.cast(pl.Float64)) for reading in _readings(text))
    return [
        month_first.alias("month_first"),
        day_first.alias("day_first"),
        clock(text).alias("clock"),
        zone(text).alias("zone"),
        pl.when(alone).then(_minutes(text)).alias("alone"),
        text.str.contains(_OF_DAY).alias("of_day"),
    ]


def other_time() -> pl.Expr:
    """Whether two dates differ (of columns `times`, also with `_b`); null without two.

    Times with zones are moments; those without are compared if neither has one. Dates of two readings are the same in
    one of them.
    """
    read, clocks, zones = (both(name) for name in ("month_first", "clock", "zone"))
    apart = pl.min_horizontal(*((one - other).abs() for one, other in (read, both("day_first"))))
    moments = ((read[0] - read[1]) * 24 * 60 + (clocks[0] - clocks[1]) - (zones[0] - zones[1])) != 0
    certain = pl.all_horizontal(pl.col(f"month_first{side}") == pl.col(f"day_first{side}") for side in ("", "_b"))
    unzoned = zones[0].is_null() & zones[1].is_null()
    clock = pl.when(unzoned).then(clocks[0] != clocks[1]).fill_null(False)
    moment = pl.when(certain).then(moments)
    return pl.when(apart.is_not_null()).then(pl.coalesce(moment, (apart >= 1) | clock))


def other_clock() -> pl.Expr:
    """Whether two times of the day without a date differ (of columns `times`, also with `_b`); null without two.

    One at least must say that it is one (`7 pm`, `19 Uhr`); `7:00` beside it may be in the morning or in the evening.
    """
    (one, other), said = both("alone"), both("of_day")
    certain = pl.all_horizontal(*(of_day | (at >= HALF_DAY) for of_day, at in zip(said, (one, other), strict=True)))
    differ = pl.when(certain).then(one != other).otherwise(one % HALF_DAY != other % HALF_DAY)
    return pl.when(said[0] | said[1]).then(differ)
