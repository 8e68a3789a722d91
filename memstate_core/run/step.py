"""The result of a step: a frame for the next step, and counts for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True)
class StepResult:
    """The outcome of one step.

    Attributes:
        frame: what the following steps read; its columns are declared in `memstate_core.model.step_frames`.
        counts: metrics to compare from night to night.
        tables: small frames to show to people, by title.
        decisions: transitions that the step decided (columns DECISION), or None.
    """

    frame: pl.DataFrame
    counts: Mapping[str, int | float] = field(default_factory=dict)
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    decisions: pl.DataFrame | None = None
