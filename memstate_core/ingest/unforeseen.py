"""Unforeseen errors: those that may come from the data, so that a run may go on without what causes them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

from deltalake.exceptions import DeltaError

from memstate_core.ingest.reasons import shortened
from memstate_core.model.errors import MemstateError

_DISK_ERROR = re.compile(r"Generic LocalFileSystem error: .*\(os error \d+\)\s*$", re.DOTALL)


def is_unforeseen(error: BaseException) -> bool:
    """Whether an error may come from the data: not one of ours, of the system, or an interruption.

    A panic of a library in Rust is no Exception. Delta Lake raises some errors of the system, such as a full disk, as
    its own.
    """
    if isinstance(error, (MemstateError, OSError)) or _is_of_the_disk(error):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _is_of_the_disk(error: BaseException) -> bool:
    return isinstance(error, DeltaError) and _DISK_ERROR.search(str(error)) is not None


def raises_unforeseen(call: Callable[[], object]) -> bool:
    """Whether a call ends with an unforeseen error; other errors are raised."""
    try:
        call()
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        return True
    return False


def described(error: BaseException) -> str:
    """An error in words. It frees the memory that the error's frames hold."""
    traceback.clear_frames(error.__traceback__)
    return shortened(f"{type(error).__name__}: {error}")
