"""Numbers and dates in the text of field values, in the usual ways of writing them."""

from __future__ import annotations

import polars as pl

_QUANTITY = r"^[^\d\s+.-]{0,3}\s*([+-]?\d+(?:\.\d+)?)\s*(%|[^\d\s.,:/-]{1,4})?\.?$"
"""One number with a currency before it or a unit after it."""
_SPELLINGS = {
    "feet": "ft", "gm": "g", "gr": "g", "hr": "h", "hrs": "h", "inch": "in", "kgs": "kg", "lbs": "lb", "ltr": "l",
    "mins": "min", "pcs": "pc", "sec": "s", "secs": "s", "yrs": "yr",
}  # fmt: skip
"""Other ways of writing a unit."""
_DURATION = r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2})$"
_MONTH = r"(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONGEST = 32
"""Characters of a text that is a date with a month's name."""
_PIVOT = 70
"""Years of two digits from here on are of the last century."""


def number(text: pl.Expr) -> pl.Expr:
    """The number that a text is: plain, with a unit or currency (`8.10 %`, `$ 1.29`), or a duration in seconds."""
    plain = text.cast(pl.Float64, strict=False)
    quantity = text.str.extract(_QUANTITY, 1).cast(pl.Float64, strict=False)
    parts = [text.str.extract(_DURATION, group).cast(pl.Float64, strict=False) for group in (1, 2, 3)]
    duration = parts[0].fill_null(0.0) * 3600 + parts[1] * 60 + parts[2]
    return pl.coalesce(pl.when(plain.is_finite()).then(plain), duration, quantity)


def unit(text: pl.Expr) -> pl.Expr:
    """The unit of a text that is a number with one, in one way of writing; null without one."""
    return text.str.extract(_QUANTITY, 2).str.to_lowercase().replace(_SPELLINGS)


def day(text: pl.Expr) -> pl.Expr:
    """Days since 1970 of a text that begins with an ISO date, or is a date with an English month's name."""
    iso = text.str.extract(r"^(\d{4}-\d{2}-\d{2})(?:$|[T ])", 1).str.to_date("%Y-%m-%d", strict=False)
    short = text.str.len_chars() <= _LONGEST
    month = (
        text.str.extract(_MONTH, 1)
        .str.to_lowercase()
        .replace_strict(_MONTHS, range(1, 13), default=None, return_dtype=pl.Int64)
    )
    numbers = text.str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64, strict=False))
    two = numbers.list.len() == 2
    first, last = numbers.list.get(0, null_on_oob=True), numbers.list.get(1, null_on_oob=True)
    century = pl.when(last < _PIVOT).then(2000).when(last < 100).then(1900).otherwise(0)
    valid = short & two & month.is_not_null() & first.is_between(1, 31) & (last < 10_000)
    parts = (last + century).cast(pl.String).str.zfill(4), month.cast(pl.String), first.cast(pl.String)
    spelled = pl.when(valid).then(pl.concat_str(parts, separator="-"))
    named = spelled.str.to_date("%Y-%m-%d", strict=False)
    return pl.coalesce(iso, named).cast(pl.Int32).cast(pl.Float64)
