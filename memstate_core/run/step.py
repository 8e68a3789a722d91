"""What every step of a run answers: a frame for the next step, and what it counted for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True)
class StepResult:
    """The outcome of one step.

    Attributes:
        frame: what the following steps read; its columns are declared in `memstate_core.model.frames`.
        counts: numbers worth watching from night to night.
        tables: small frames worth reading, by title.
        decisions: transitions that the step decided (columns DECISION), or None.
    """

    frame: pl.DataFrame
    counts: Mapping[str, int | float] = field(default_factory=dict)
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    decisions: pl.DataFrame | None = None
