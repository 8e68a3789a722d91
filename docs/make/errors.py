"""The reference of errors and exit codes, read from the exception tree."""

from __future__ import annotations

from collections.abc import Iterator

from docs.make.markdown import code, one_line, table
from memstate_core.model.errors import MemstateError


def errors() -> str:
    """Every error that a command or a client may end with: its name, its exit code, what it means."""
    rows = [
        (code(kind.__name__), str(kind.exit_code), one_line((kind.__doc__ or "").split("\n\n")[0])) for kind in _all()
    ]
    return table(("Error", "Exit code", "Means"), rows)


def _all(root: type[MemstateError] = MemstateError) -> Iterator[type[MemstateError]]:
    for kind in root.__subclasses__():
        yield kind
        yield from _all(kind)
