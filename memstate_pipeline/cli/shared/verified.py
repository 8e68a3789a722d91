"""Verification beside writers: what fails while the store changes is verified again.

`memstate verify` takes no lock, so that it works on a full disk and in a home that it cannot write, and so that nights
go on. A snapshot that is replaced, or a ledger that an erasure rewrites, while it is read looks damaged and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.model.errors import StoreLocked

if TYPE_CHECKING:
    from memstate_core.night.verify import Verdict
    from memstate_core.state.home import Home

Verdicts = Mapping[str, list["Verdict"]]
_ATTEMPTS = 3
"""How often a store is verified at most that changes each time; the last verdicts count."""


def verified(home: Home, verify: Callable[[], Verdicts]) -> Verdicts:
    """The verdicts of a verification that passes, or in which nothing was written, or of the last attempt.

    Args:
        home: the home of the store.
        verify: verifies it.

    Raises:
        StoreLocked: it fails while an erasure is in progress.
    """
    for _ in range(_ATTEMPTS - 1):
        before = _files(home)
        try:
            found = verify()
        except Exception:
            if not _is_written(home, before):
                raise
            continue
        if all(verdict.passed for verdicts in found.values() for verdict in verdicts) or not _is_written(home, before):
            return found
    return verify()


def _is_written(home: Home, before: list[tuple[int, ...]]) -> bool:
    """Whether the store changed since; refuses to go on while an erasure rewrites it."""
    from memstate_core.state.lock import holder_of

    with suppress(OSError):
        if home.begun_erasure.exists() and (holder := holder_of(home.lock)):
            raise StoreLocked(str(home.root), holder)
    return _files(home) != before


def _files(home: Home) -> list[tuple[int, ...]]:
    """The state of files that every writer replaces or adds to: the ledger's chain, what is served, the shards."""
    from memstate_core.state.ledger.chain import CHAIN

    served = sorted((home.root / "snapshots").glob("*/CURRENT"))
    return [_facts(path) for path in (home.ledger / CHAIN, home.layout, home.begun_erasure, *served)]


def _facts(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns)
