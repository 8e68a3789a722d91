"""Unforeseen errors: those that may come from the data, so that a run may go on without what causes them."""

from __future__ import annotations

import traceback

from memstate_core.ingest.reasons import shortened
from memstate_core.model.errors import MemstateError


def is_unforeseen(error: BaseException) -> bool:
    """Whether an error may come from the data: not one of ours, of the system, or an interruption.

    A panic of a library in Rust is no Exception.
    """
    if isinstance(error, (MemstateError, OSError)):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def described(error: BaseException) -> str:
    """An error in words. It frees the memory that the error's frames hold."""
    traceback.clear_frames(error.__traceback__)
    return shortened(f"{type(error).__name__}: {error}")
