"""What a checker finds: rows with a status and a sentence for each target."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

FINDINGS = {"scope": pl.String, "target": pl.String, "check": pl.String, "status": pl.String, "message": pl.String}
"""One row for each target of a check; `target` names an item as forms of `memory` do."""

FAILED, PASSED, STALE, UNKNOWN, WARNING = "failed", "passed", "stale", "unknown", "warning"


def found(noted: pl.DataFrame, check: str, results: Iterable[tuple[str, str]]) -> pl.DataFrame:
    """The findings (columns FINDINGS) of a check about the observations in `noted`, in their order."""
    status, message = zip(*results, strict=True) if noted.height else ((), ())
    return pl.DataFrame(
        {
            "scope": noted["scope"],
            "target": "observation:" + noted["observation_id"],
            "check": pl.Series([check] * noted.height, dtype=pl.String),
            "status": pl.Series(status, dtype=pl.String),
            "message": pl.Series(message, dtype=pl.String),
        },
        schema=FINDINGS,
    )
