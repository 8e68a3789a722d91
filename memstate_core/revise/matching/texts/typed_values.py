"""Numbers and durations in the text of field values, in the usual ways of writing them."""

from __future__ import annotations

import polars as pl

_QUANTITY = r"^[^\d\s+.-]{0,3}\s*([+-]?\d+(?:\.\d+)?)\s*(%|[^\d\s.,:/-]{1,4})?\.?$"
"""One number with a currency before it or a unit after it."""
_SPELLINGS = {
    "feet": "ft", "gm": "g", "gr": "g", "hr": "h", "hrs": "h", "inch": "in", "kgs": "kg", "lbs": "lb", "ltr": "l",
    "mins": "min", "pcs": "pc", "sec": "s", "secs": "s", "yrs": "yr",
}  # fmt: skip
"""Other ways of writing a unit."""
_PLAIN = r"^[+-]?(?:0|[1-9]\d{0,14}|0\d{1,2})(?:\.\d+)?$"
"""A number that is a quantity; with more digits, or more than three from a leading zero on, it is a code."""
_SMALL = r"^[+-]?\d(?:\.\d+)?[eE]-\d+$"
_VERSION = r"^[vV]\d"
NEAR_NUMBER, MEASURED = 0.005, 3
"""Relative distance of numbers up to which they may be the same, and decimals from which they are."""
EITHER_SIGN = 0.05
"""Share of a field's numbers with the rarer sign, from which zero is a point on its scale as any other is."""
DECIMALS = r"\.(\d+)"
_DURATION = r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2})$"
_AMOUNT = r"(\d+(?:\.\d+)?)\s*"
_HOURS, _MINUTES, _SECONDS = (
    r"(?:h|hrs?|hours?|std)\.?",
    r"(?:m|mins?|minutes?|minuten)\.?",
    r"(?:s|secs?|seconds?|sek)\.?",
)
_SPAN = rf"(?i)^(?:pt)?(?:{_AMOUNT}{_HOURS})?\s*(?:{_AMOUNT}{_MINUTES})?\s*(?:{_AMOUNT}{_SECONDS})?$"
"""Hours, minutes and seconds with their units, also as in ISO 8601 (`PT1H42M`)."""
_METRES = r"(?i)^\d+(?:\.\d+)?\s*m\.?$"
_TO_SECOND = r"(?i):|s(?:ecs?|econds?|ek)?\.?$"
"""Durations that are given to the second."""
HALF_MINUTE = 30.0
"""Seconds."""
_UNITS_OF_TIME = (1.0, 60.0, 3600.0, 0.001)
"""Seconds of what a number without a unit may count beside a duration."""
_YEAR, _SHORT_YEAR = r"^(?:19|20)\d{2}$", r"^['\u2019]?(\d{2})$"


def number(text: pl.Expr) -> pl.Expr:
    """The number that a text is: plain, with a unit or currency (`8.10 %`, `$ 1.29`), or a duration in seconds."""
    found = pl.when(~text.str.contains(_VERSION)).then(text.str.extract(_QUANTITY, 1))
    quantity = pl.when(found.str.contains(_PLAIN)).then(found.cast(pl.Float64, strict=False))
    small = pl.when(text.str.contains(_SMALL)).then(text.cast(pl.Float64, strict=False))
    return pl.coalesce(quantity, small, _colons(text))


def amounts(text: pl.Expr) -> list[pl.Expr]:
    """What the comparisons below need of a text: decimals, seconds, to_second, unit, year and short_year."""
    return [
        text.str.extract(DECIMALS).str.len_chars().fill_null(0).cast(pl.Int64).alias("decimals"),
        seconds(text).alias("seconds"),
        text.str.contains(_TO_SECOND).alias("to_second"),
        unit(text).alias("unit"),
        pl.when(text.str.contains(_YEAR)).then(text.str.slice(2)).alias("year"),
        text.str.extract(_SHORT_YEAR, 1).alias("short_year"),
    ]


def least_size(number: pl.Expr) -> pl.Expr:
    """The size that numbers of a field have at least where distances are relative to it; 0 unless both signs are usual.

    Those of coordinates near the equator differ by as much as elsewhere, so theirs are relative to the lower quartile
    of the absolute values.
    """
    rarer = pl.min_horizontal((number < 0).mean(), (number > 0).mean())
    return pl.when(rarer >= EITHER_SIGN).then(number.abs().quantile(0.25)).otherwise(0.0)


def other_number() -> pl.Expr:
    """Whether two numbers differ by more than rounding (of columns number and `amounts`, also with `_b`; least_size).

    A decimal of three digits and more is measured, so its last digits vary. Among shorter ones that is so only of a
    number that was rounded. Zeros at the end count for nothing, since many programs leave them out. Null without two.
    """
    (one, other), decimals = both("number"), both("decimals")
    size = pl.max_horizontal(one.abs(), other.abs(), "least_size", 1e-12)
    fewest = pl.min_horizontal(*decimals)
    rounded = (decimals[0] != decimals[1]) & ((one - other).abs() <= 0.5001 / pl.lit(10.0).pow(fewest))
    near = ((one - other).abs() / size <= NEAR_NUMBER) & (rounded | (fewest >= MEASURED))
    whole = (one == one.round()) & (other == other.round())
    return pl.when(one.is_not_null() & other.is_not_null()).then((one != other) & (whole | ~near))


def other_duration() -> pl.Expr:
    """Whether two durations differ by more than their rounding (of columns number and `amounts`, also with `_b`).

    One may be a number without a unit. Null if neither says that it is a duration, or if the other is none.
    """
    spans, exact = both("seconds"), both("to_second")
    plain = [pl.when(unit.is_null()).then(number) for unit, number in zip(both("unit"), both("number"), strict=True)]
    within = pl.when(exact[0] & exact[1]).then(0.5).otherwise(HALF_MINUTE)
    counted = (
        pl.min_horizontal(*((number * size - span).abs() for size in _UNITS_OF_TIME))
        > pl.when(said).then(1.0).otherwise(HALF_MINUTE)
        for number, span, said in zip(reversed(plain), spans, exact, strict=True)
    )
    return pl.coalesce((spans[0] - spans[1]).abs() > within, *counted)


def other_year() -> pl.Expr:
    """Whether a year of two digits (`'94`) is another than one of four (of columns `amounts`, also with `_b`)."""
    (year, year_b), (short, short_b) = both("year"), both("short_year")
    return pl.coalesce(year != short_b, year_b != short)


def both(name: str) -> tuple[pl.Expr, pl.Expr]:
    """The columns of a value and of the other one."""
    return pl.col(name), pl.col(f"{name}_b")


def seconds(text: pl.Expr) -> pl.Expr:
    """Seconds of a duration with units (`1h 42m`, `102 min`, `PT5M17S`) or colons (`5:17`); null without one."""
    amounts = [text.str.extract(_SPAN, group).cast(pl.Float64, strict=False) for group in (1, 2, 3)]
    sizes = (3600.0, 60.0, 1.0)
    total = pl.sum_horizontal(*(amount * size for amount, size in zip(amounts, sizes, strict=True)))
    said = pl.any_horizontal(*(amount.is_not_null() for amount in amounts)) & ~text.str.contains(_METRES)
    return pl.coalesce(pl.when(said).then(total), _colons(text))


def _colons(text: pl.Expr) -> pl.Expr:
    parts = [text.str.extract(_DURATION, group).cast(pl.Float64, strict=False) for group in (1, 2, 3)]
    return parts[0].fill_null(0.0) * 3600 + parts[1] * 60 + parts[2]


def unit(text: pl.Expr) -> pl.Expr:
    """The unit of a text that is a number with one, in one way of writing; null without one."""
    return text.str.extract(_QUANTITY, 2).str.to_lowercase().replace(_SPELLINGS)
