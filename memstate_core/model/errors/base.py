"""The base class of every exception that memstate raises to its callers."""

from __future__ import annotations

from typing import Any


class MemstateError(Exception):
    """The base class.

    Subclasses take their facts in `__init__` and build the message from them: what was found, what was expected, what
    to do next.
    """

    exit_code = 1

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.message, self.facts), {"exit_code": self.exit_code}


def _revive(kind: type[MemstateError], message: str, facts: dict[str, Any]) -> MemstateError:
    error = kind.__new__(kind)
    MemstateError.__init__(error, message, **facts)
    return error
