"""Keeping the chain of a ledger: each commit is flushed and recorded, and what was recorded can be compared.

Invariant: a commit is recorded before it is acknowledged. One without a record is what a killed writer left; it is
recorded by the next writer if it is whole, and set aside otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from memstate_core.model.errors import LedgerDamaged
from memstate_core.state.files import file_digest, sync_path
from memstate_core.state.ledger_chain import CHAIN, Chain, changed_files, extend, read_chain
from memstate_core.state.ledger_commits import (
    LAST_CHECKPOINT,
    LOG,
    added_data,
    commit_name,
    commits_after,
    is_whole,
    log_files,
    set_aside,
    version_of,
)

Active = Callable[[str], list[str]]
"""Lists the data files of the newest version of a table, as paths below its folder."""


class Keeper:
    """The chain of the ledger in a folder. Writing methods are called under the ledger's lock."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: tuple[tuple[int, int, int], Chain] | None = None
        self._sound: dict[Path, tuple[int, int, int]] = {}

    @property
    def head(self) -> str | None:
        """The digest of the last entry; None where the ledger has no chain yet."""
        return self._chain().head

    def damage(self, head: str | None = None, tables: Collection[str] | None = None) -> list[str]:
        """What was acknowledged and is missing or differs, one sentence each, after reading every recorded byte.

        Args:
            head: an entry that the chain must have, as a snapshot's manifest names it.
            tables: the tables to read; all of them if None.
        """
        chain = self._chain()
        problems = list(chain.problems)
        if head is not None and head not in chain.heads:
            problems.append(f"{CHAIN}: it lacks the entry {head}, of which a snapshot was made")
        for table in chain.files if tables is None else chain.files.keys() & tables:
            mutable = {LAST_CHECKPOINT} if self._later(table) else set()
            files = {name: digest for name, digest in chain.files[table].items() if name not in mutable}
            problems += changed_files(self._root, table, files)
        if problems and self._chain() is not chain:  # a vacuum removed files meanwhile
            return self.damage(head, tables)
        return problems

    def known(self, table: str) -> tuple[set[str], set[str]]:
        """The files of a table that are recorded, and those that a vacuum removed or was removing."""
        chain = self._chain()
        return set(chain.files.get(table, {})), set(chain.removed.get(table, set()))

    def forget(self, table: str, names: Collection[str]) -> None:
        """Records that files are about to be removed, so that their absence is no damage."""
        chain = self._chain()
        extend(self._root, chain, table, {}, sorted(names))
        self._read = self._signature(), chain

    def require_sound(self, head: str | None = None, tables: Collection[str] | None = None) -> None:
        """Reads every recorded byte of the ledger, or of some tables, and compares it with the chain.

        Raises:
            LedgerDamaged: something that was acknowledged is missing or differs.
        """
        self._refuse(self.damage(head, tables))

    def require_data(self, table: str, names: Iterable[str]) -> None:
        """Compares data files with the chain; one that was sound is read again only if its size, time or inode differ.

        Raises:
            LedgerDamaged: a file is missing or differs.
        """
        recorded = self._chain().files.get(table, {})
        marks = {name: _mark(self._root / table / name) for name in names if name in recorded}
        unread = {name: mark for name, mark in marks.items() if self._sound.get(self._root / table / name) != mark}
        self._refuse(changed_files(self._root, table, {name: recorded[name] for name in unread}))
        self._sound.update({self._root / table / name: mark for name, mark in unread.items()})

    def recover(self, tables: Iterable[str], active: Active) -> None:
        """Checks the last acknowledged commit of each table; completes or sets aside what a kill left after it.

        A ledger from before the chain is recorded as it is found, since all of it was acknowledged.

        Raises:
            LedgerDamaged: an acknowledged commit is missing or differs.
        """
        is_old = self._chain().head is None
        for table in tables:
            self._recover(table, active, is_old=is_old)

    def _recover(self, table: str, active: Active, *, is_old: bool) -> None:
        chain, folder = self._chain(), self._root / table
        problems, last = list(chain.problems), chain.versions.get(table)
        if last is not None:
            name = commit_name(last)
            problems += changed_files(self._root, table, {name: chain.files[table][name]})
        self._refuse(problems)
        later = self._later(table)
        if not is_old and (last is not None or len(later) == 1):
            unfinished = next((version for version in later if not is_whole(folder, version)), None)
            if unfinished is not None:
                set_aside(folder, unfinished)
        if later or (last is None and log_files(folder)):
            self.record(table, active)

    def record(self, table: str, active: Active) -> None:
        """Flushes the files that a table gained since the last entry about it, and adds an entry.

        Raises:
            LedgerDamaged: a commit cannot be read, or names data that is not there.
        """
        chain, folder = self._chain(), self._root / table
        recorded = chain.files.get(table, {})
        log = [name for name in log_files(folder) if name not in recorded or name == LAST_CHECKPOINT]
        served = [] if recorded else active(table)
        self._refuse([f"{table}: {path} is missing" for path in served if not (folder / path).exists()])
        candidates = dict.fromkeys([*log, *self._data(table, log), *served])
        names = [name for name in candidates if (folder / name).exists()]
        if not names:
            return
        for path in (*(folder / name for name in names), folder / LOG, folder, self._root):
            sync_path(path)
        extend(self._root, chain, table, {name: file_digest(folder / name) for name in names})
        self._read = self._signature(), chain

    def _data(self, table: str, log: list[str]) -> list[str]:
        versions = [version for name in log if (version := version_of(name)) is not None]
        try:
            return [path for version in versions for path in added_data(self._root / table, version)]
        except (OSError, ValueError) as error:
            raise LedgerDamaged(str(self._root), [f"{table}: {error}"]) from None

    def _later(self, table: str) -> list[int]:
        """The commits of a table that have no entry."""
        return list(commits_after(self._root / table, self._chain().versions.get(table, -1)))

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise LedgerDamaged(str(self._root), problems)

    def _chain(self) -> Chain:
        """The chain, read again only if its file has changed."""
        if self._read is None or self._read[0] != self._signature():
            self._read = self._signature(), read_chain(self._root)
        return self._read[1]

    def _signature(self) -> tuple[int, int, int]:
        return _mark(self._root / CHAIN)


def _mark(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written or replaced; zeros where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return found.st_size, found.st_mtime_ns, found.st_ino
