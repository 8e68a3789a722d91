"""The section `[retention]` of `memstate.toml`: how long records of what was done are kept.

Topics, evidence and decisions are no matter of retention: the policy archives, and only `memstate erase` removes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from memstate_core.policy.loading import Section

LEAST_PROCESSED_DAYS = 8
"""A dump that grows within a week after it was read is read again from where it was."""


class RetentionSettings(Section):
    """What `memstate retention` and its monthly job remove."""

    reports: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    """Number of report pages that each shard keeps, with their JSON; older ones are removed."""
    run_days: Annotated[int, Field(ge=0, le=36_500)] = 180
    """Days that Dagster's record of a run that ended is kept, with its events and logs. 0: for ever."""
    processed_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Days that a dump stays in `inbox/processed` after it was read; its rows are in the ledger. 0: for ever, else at
    least 8. Dumps in `inbox/failed` are never removed."""

    @field_validator("processed_days")
    @classmethod
    def _outlasts_growth(cls, days: int) -> int:
        if 0 < days < LEAST_PROCESSED_DAYS:
            raise ValueError(f"expected 0 for ever, or at least {LEAST_PROCESSED_DAYS} days")
        return days
