"""The section `[ingest]` of `memstate.toml`: limits on imported rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memstate_core.policy.loading import Section


class IngestSettings(Section):
    """Limits on imported rows."""

    max_line_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    """Largest row of a dump, in MiB; longer rows are quarantined. It also bounds a topic that a language model
    returns."""
    max_future_days: Annotated[float, Field(ge=0, le=36_500)] = 31.0
    """How far ahead of the run's clock a date may lie, in days; rows with later dates are quarantined."""
    chunk_rows: Annotated[int, Field(ge=100, le=10_000_000)] = 50_000
    """Number of rows that an import commits to the ledger at a time. Larger batches are faster and use more memory."""
    inbox_settle_seconds: Annotated[float, Field(ge=0, le=3600)] = 2.0
    """Seconds that a file of the inbox must not have changed before it is read. An import waits this long for a file
    that changed just before; one that is still being written then, or open for writing, stays for the next."""
