"""The chain of causes behind an exception."""

from __future__ import annotations

from collections.abc import Iterator


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, down to the first."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # a chain may lead back into itself
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
