"""Rows with which a function fails: an unforeseen error that only some of the data causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest


def holds_poison(frame: pl.DataFrame, column: str) -> bool:
    """Whether a row of a frame has the value `poison` in a column."""
    return column in frame.columns and bool((frame[column] == "poison").any())


def poisoned(patch: pytest.MonkeyPatch, owner: object, name: str, is_poisoned: Callable[..., bool]) -> None:
    """Replaces a function of a module or class by one that fails where a poisoned row is among its arguments."""
    sound = getattr(owner, name)

    def fail(*given: Any, **how: Any) -> Any:
        if is_poisoned(*given):
            raise OverflowError("a value too large for this machine")
        return sound(*given, **how)

    patch.setattr(owner, name, fail)
