"""The section `[segment]` of `memstate.toml`: how sessions are cut into segments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from memstate_core.policy.loading import Section


class SegmentSettings(Section):
    """How sessions are cut into segments of turns about one subject (TextTiling)."""

    window: Annotated[int, Field(ge=1, le=20)] = 3
    """Number of turns on each side of a gap whose mean vectors are compared. A wider window smooths
    over digressions."""
    min_turns: Annotated[int, Field(ge=1, le=100)] = 4
    """Shortest segment, in turns: a boundary is at least this far from both ends of the session, and no other gap
    this near has a lower similarity."""
    max_turns: Annotated[int, Field(ge=2, le=1000)] = 24
    """Longest segment, in turns, `min_turns` or more; longer ones are cut into nearly equal parts."""

    @model_validator(mode="after")
    def _shortest_below_longest(self) -> SegmentSettings:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns ({self.min_turns}) must not exceed max_turns ({self.max_turns})")
        return self
