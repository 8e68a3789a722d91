"""The record that the chain of the ledger was begun anew, which stays in the chain for good."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from memstate_core.model.quantity import quantity
from memstate_core.model.text import iso


class Beginning(Struct, frozen=True, kw_only=True):
    """Why a chain does not go back to the first commit.

    Attributes:
        at: when it was begun anew.
        by: the user who did it.
        why: the reason that was given.
        lost: what was wrong with the chain before.
        heads: entries of the lost chain that manifests of snapshots name.
        unproven: by table, how many rows were not in the fold that was compared with the served state.
    """

    at: datetime
    by: str
    why: str
    lost: tuple[str, ...]
    heads: tuple[str, ...]
    unproven: dict[str, int]

    @property
    def text(self) -> str:
        """The record in one line."""
        rows = ", ".join(quantity(count, f"rows of {table}") for table, count in self.unproven.items() if count)
        beyond = f"; the fold did not prove {rows}" if rows else ""
        return f"begun anew at {iso(self.at)} by {self.by}: {self.why} ({'; '.join(self.lost)}{beyond})"
