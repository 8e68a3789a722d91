"""Answers of people about pairs, given by what counts of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.answers import WAITING, Answers, Flags, Reals, Sample

Answer = tuple[float, int, bool]
"""The probability of a pair when it was suggested, its kind, and whether the answer was `same`."""


def answers(*rows: Answer, value: float = 0.9, waiting: Iterable[tuple[str, str, int]] | None = None) -> Answers:
    """Answers in the order of the queue, at the positions 1, 2 and on, each worth a value.

    Pairs wait since a position; all of them do, for ever, if `waiting` is None.
    """
    probability, kind, same = zip(*rows, strict=True) if rows else ((), (), ())
    suggested = None if waiting is None else pl.DataFrame([*waiting], WAITING, orient="row")
    said = np.array(probability, float), np.array(kind), np.array(same, bool)
    return given(*said, np.full(len(rows), value), suggested)


def given(
    probability: Reals, kind: NDArray[Any], same: Flags, value: Reals, waiting: pl.DataFrame | None = None
) -> Answers:
    """The same, of arrays."""
    said = probability, kind.astype(np.int64), same
    return Answers(*said, Sample(*said, value, np.arange(1, len(kind) + 1), waiting))
