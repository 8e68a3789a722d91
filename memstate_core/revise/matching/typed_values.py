"""Numbers in the text of field values, in the usual ways of writing them."""

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
_DURATION = r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2})$"


def number(text: pl.Expr) -> pl.Expr:
    """The number that a text is: plain, with a unit or currency (`8.10 %`, `$ 1.29`), or a duration in seconds."""
    found = pl.when(~text.str.contains(_VERSION)).then(text.str.extract(_QUANTITY, 1))
    quantity = pl.when(found.str.contains(_PLAIN)).then(found.cast(pl.Float64, strict=False))
    small = pl.when(text.str.contains(_SMALL)).then(text.cast(pl.Float64, strict=False))
    parts = [text.str.extract(_DURATION, group).cast(pl.Float64, strict=False) for group in (1, 2, 3)]
    duration = parts[0].fill_null(0.0) * 3600 + parts[1] * 60 + parts[2]
    return pl.coalesce(quantity, small, duration)


def other_number() -> pl.Expr:
    """Whether two numbers differ by more than rounding (of columns text, number, text_b, number_b); null without two.

    A decimal of three digits and more is measured, so its last digits vary. Among shorter ones that is so only of a
    number that was rounded. Zeros at the end count for nothing, since many programs leave them out.
    """
    one, other = pl.col("number"), pl.col("number_b")
    size = pl.max_horizontal(one.abs(), other.abs(), 1e-12)
    decimals = [pl.col(text).str.extract(r"\.(\d+)").str.len_chars().fill_null(0) for text in ("text", "text_b")]
    fewest = pl.min_horizontal(*decimals)
    rounded = (decimals[0] != decimals[1]) & ((one - other).abs() <= 0.5001 / pl.lit(10.0).pow(fewest))
    near = ((one - other).abs() / size <= NEAR_NUMBER) & (rounded | (fewest >= MEASURED))
    whole = (one == one.round()) & (other == other.round())
    return pl.when(one.is_not_null() & other.is_not_null()).then((one != other) & (whole | ~near))


def unit(text: pl.Expr) -> pl.Expr:
    """The unit of a text that is a number with one, in one way of writing; null without one."""
    return text.str.extract(_QUANTITY, 2).str.to_lowercase().replace(_SPELLINGS)
