"""Dates, times of the day and zones in the text of field values, in the usual ways of writing them.

`2026-03-10T16:00Z`, `2026/3/10 16:00`, `10 March 2026`, `Tue, 10 Mar 2026 11:00:00 -0500` and `Mar 10, 2026 11 AM EST`.
"""

from __future__ import annotations

import polars as pl

_ISO = r"^(\d{4}-\d{2}-\d{2}|\d{4}/\d{1,2}/\d{1,2})(?:$|[T ])"
_MONTH = r"(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONGEST = 32
"""Characters, beside the time of the day, of a text that is a date with a month's name."""
_PIVOT = 70
"""Years of two digits from here on are of the last century."""
_CLOCK = r"(?i)(?:^|[T\s])(\d{1,2})(?::(\d{2})(?::\d{2}(?:\.\d+)?)?(?:\s*([ap])\.?m\b\.?)?|\s*([ap])\.?m\b\.?)"
_OFFSET = r"(?i)\d(?:\s*[ap]\.?m\b\.?)?\s*(?:utc|gmt)?\s*([+-])(\d{2}):?(\d{2})(?:$|\s)"
_ZONE = r"(?i)\d(?:\s*[ap]\.?m\b\.?)?\s*(z|utc?|gmt|[ecmp][sd]t)(?:$|\s)"
_HOURS_BEHIND = {"est": 5, "edt": 4, "cst": 6, "cdt": 5, "mst": 7, "mdt": 6, "pst": 8, "pdt": 7}
"""Zones of North America (RFC 2822, section 4.3); others that have a name only are Greenwich's."""


def day(text: pl.Expr) -> pl.Expr:
    """Days since 1970 of a text that begins with an ISO date, or is a date with an English month's name."""
    iso = text.str.extract(_ISO, 1).str.replace_all("/", "-").str.to_date("%Y-%m-%d", strict=False)
    date = text.str.replace(_CLOCK + r"(?:\s*(?:utc|gmt)?\s*[+-]\d{2}:?\d{2}(?:$|\s))?", " ")
    month = (
        date.str.extract(_MONTH, 1)
        .str.to_lowercase()
        .replace_strict(_MONTHS, range(1, 13), default=None, return_dtype=pl.Int64)
    )
    numbers = date.str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64, strict=False))
    two = (numbers.list.len() == 2) & (date.str.len_chars() <= _LONGEST)
    first, last = numbers.list.get(0, null_on_oob=True), numbers.list.get(1, null_on_oob=True)
    century = pl.when(last < _PIVOT).then(2000).when(last < 100).then(1900).otherwise(0)
    valid = two & month.is_not_null() & first.is_between(1, 31) & (last < 10_000)
    parts = (last + century).cast(pl.String).str.zfill(4), month.cast(pl.String), first.cast(pl.String)
    spelled = pl.when(valid).then(pl.concat_str(parts, separator="-"))
    named = spelled.str.to_date("%Y-%m-%d", strict=False)
    return pl.coalesce(iso, named).cast(pl.Int32).cast(pl.Float64)


def clock(text: pl.Expr) -> pl.Expr:
    """Minutes since the beginning of the day of a text that is a date with a time; null without one, or at midnight.

    With a date alone, many write midnight.
    """
    hour, minute = (text.str.extract(_CLOCK, group).cast(pl.Int64, strict=False) for group in (1, 2))
    half = pl.coalesce(text.str.extract(_CLOCK, 3), text.str.extract(_CLOCK, 4)).str.to_lowercase()
    of_day = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + pl.when(half == "p").then(12).otherwise(0))
    minutes = of_day * 60 + minute.fill_null(0)
    return pl.when(minutes.is_between(1, 24 * 60 - 1)).then(minutes)


def zone(text: pl.Expr) -> pl.Expr:
    """Minutes by which the zone of a time is ahead of Greenwich; null without one."""
    hours, minutes = (text.str.extract(_OFFSET, group).cast(pl.Int64, strict=False) for group in (2, 3))
    sign = pl.when(text.str.extract(_OFFSET, 1) == "-").then(-1).otherwise(1)
    name = text.str.extract(_ZONE, 1).str.to_lowercase()
    behind = name.replace_strict(_HOURS_BEHIND, default=0, return_dtype=pl.Int64)
    return pl.coalesce(sign * (hours * 60 + minutes), pl.when(name.is_not_null()).then(-60 * behind))


def other_time() -> pl.Expr:
    """Whether two dates differ (of columns text, day, text_b, day_b); null without two.

    Times with zones are moments; those without are compared if neither has one.
    """
    one, other = (
        (pl.col(f"day{side}"), clock(pl.col(f"text{side}")), zone(pl.col(f"text{side}"))) for side in ("", "_b")
    )
    apart = (one[0] - other[0]).abs()
    moments = ((one[0] - other[0]) * 24 * 60 + (one[1] - other[1]) - (one[2] - other[2])) != 0
    unzoned = one[2].is_null() & other[2].is_null()
    clocks = pl.when(unzoned).then(one[1] != other[1]).fill_null(False)
    return pl.when(apart.is_not_null()).then(pl.coalesce(moments, (apart >= 1) | clocks))
