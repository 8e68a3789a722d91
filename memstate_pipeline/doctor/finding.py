"""The result of one examination."""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE_SECONDS = 5.0
"""How long an examination waits for another machine."""


@dataclass(frozen=True)
class Finding:
    """The result of one examination.

    Attributes:
        name: what was examined.
        ok: whether it passed.
        detail: what was found and, if it failed, what to do.
    """

    name: str
    ok: bool
    detail: str
