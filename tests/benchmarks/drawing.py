"""Draws that are the same on every machine, and text made from them, for `generate.py`.

A draw is a hash of what it decides about, so it depends on no order and on no chunk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

END = datetime(2026, 2, 1, tzinfo=UTC)
WINDOW_SECONDS = 180 * 86_400

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Spec:
    """What to generate: the number of rows, topics and scopes."""

    rows: int
    topics: int
    scopes: int
    seed: int


def mix(*parts: Numbers | int) -> Numbers:
    """SplitMix64 over several numbers: the same on every machine, unlike the hashes of the libraries."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        state = state * np.uint64(31) + np.uint64(0x9E3779B97F4A7C15) + np.atleast_1d(np.asarray(part, np.uint64))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def column(frame: pl.DataFrame, name: str) -> Numbers:
    """A column as numbers to draw from."""
    return frame[name].to_numpy().astype(np.uint64)


def period(frame: pl.DataFrame, days: int, *owner: Numbers | int) -> Numbers:
    """Which of its periods of so many days an observation falls in; owners change on days of their own."""
    day, offset = column(frame, "observed") // np.uint64(86_400), mix(*owner) % np.uint64(days)
    return (day + offset) // np.uint64(days)


def pick(words: Sequence[str], draw: pl.Expr, salt: int = 0) -> pl.Expr:
    """One of the words per row; draws with another salt are independent."""
    index = (draw // (7919**salt)) % len(words)
    word: pl.Expr = index.replace_strict(range(len(words)), words, return_dtype=pl.String)
    return word


def choose(index: pl.Expr, options: Sequence[pl.Expr]) -> pl.Expr:
    """The option whose number is in `index`."""
    chosen = options[0]
    for number, option in enumerate(options[1:], start=1):
        chosen = pl.when(index == number).then(option).otherwise(chosen)
    return chosen


def fill(template: str, words: dict[str, pl.Expr]) -> pl.Expr:
    """The template with every `<name>` replaced by that name's words."""
    parts = re.split(r"<(\w+)>", template)
    return pl.concat_str([words[part] if i % 2 else pl.lit(part) for i, part in enumerate(parts)])


def any_of(templates: Sequence[str], draw: pl.Expr, words: dict[str, pl.Expr]) -> pl.Expr:
    """One of the templates per row, filled."""
    return choose(draw % len(templates), [fill(template, words) for template in templates])


def quoted(words: pl.Expr) -> pl.Expr:
    """The words as a JSON string."""
    return pl.concat_str(pl.lit('"'), words, pl.lit('"'))


def moment(seconds: pl.Expr) -> pl.Expr:
    """Seconds since the window opened as an ISO moment."""
    start = END - timedelta(seconds=WINDOW_SECONDS)
    return (pl.lit(start) + pl.duration(seconds=seconds)).dt.to_string("%Y-%m-%dT%H:%M:%SZ")
