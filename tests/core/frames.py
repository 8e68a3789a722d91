"""Frames of declared columns from the few that matter to a test."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema, project


def filled(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The declared columns; those that the test leaves out are null."""
    return project(frame, schema, nulls=list(schema))
