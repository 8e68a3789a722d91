"""The section `[schedule]` of `memstate.toml`: when nights, verification, retention and compaction run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from memstate_core.policy.loading import Section

_CRON_FORM = (
    "five fields (minute, hour, day of month, month, day of week) that name a time which occurs,"
    " such as '0 2 * * *' for 02:00 every day"
)


class ScheduleSettings(Section):
    """When the nightly job, the weekly verification, the monthly retention and the monthly compaction run."""

    cron: str = "0 2 * * *"
    """When the nightly run starts: a cron expression of five fields (minute, hour, day of month, month, day of week),
    in `time_zone`."""
    verify_cron: str = "0 5 * * sun"
    """When the whole store is verified, as `memstate verify` does it, in the form of `cron`; an empty text for never.
    Nights that come due meanwhile wait."""
    retention_cron: str = "0 6 1 * *"
    """When what `[retention]` no longer keeps is removed, as `memstate retention` does it, in the form of `cron`; an
    empty text for never."""
    compaction_cron: str = "0 7 1 * *"
    """When small files of the ledger are joined and superseded ones removed, as `memstate compact` does it, in the form
    of `cron`; an empty text for never."""
    pressure_rows: Annotated[int, Field(ge=0)] = 10_000
    """A night is requested ahead of schedule for a shard in which so many pieces of evidence wait for one, while
    `memstate ui` or the daemon runs; 0 for never."""
    skip_unchanged_days: Annotated[float, Field(ge=0, le=366)] = 0.0
    """A shard to which nothing was written since its last night, and in which no step of forgetting is due, has no
    night until its snapshot is so many days old; 0 for a night of every shard each time. Meanwhile its answers have the
    salience of its last night."""
    stale_hours: Annotated[float, Field(gt=0, le=100_000)] = 36.0
    """Hours after which a served snapshot counts as stale: it is notified of, its asset turns red, and `memstate
    doctor` names evidence that has waited that long. To what may be that old for want of a change,
    `skip_unchanged_days` is added."""
    max_run_hours: Annotated[float, Field(ge=0, le=8760)] = 24.0
    """Hours after which Dagster's daemon ends a run that it started, and marks it as failed, so that a step that hangs
    does not keep later nights waiting; 0 for no limit. Runs of the command line have none."""
    time_zone: str = "UTC"
    """Time zone of these times, by its IANA name, such as `Europe/Berlin`. A time that a change of the
    clocks skips runs at the next one that exists; one that comes twice runs once."""

    @field_validator("cron", "verify_cron", "retention_cron", "compaction_cron")
    @classmethod
    def _is_cron(cls, cron: str, info: ValidationInfo) -> str:
        from croniter import croniter  # only where a file or variable sets the key

        if not cron and info.field_name != "cron":
            return cron
        try:
            if (fields := len(cron.split())) != 5:
                raise ValueError(f"found {fields} field{'' if fields == 1 else 's'}")
            croniter.expand(cron, strict=True)
        except ValueError as error:
            raise ValueError(f"{error}; expected {_CRON_FORM}") from None
        return cron

    @field_validator("time_zone")
    @classmethod
    def _is_time_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"no time zone {name!r}; expected an IANA name, such as 'Europe/Berlin'") from None
        return name
