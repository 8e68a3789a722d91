"""Keeping the chain of a ledger: each commit is flushed and recorded, and what was recorded can be compared.

Invariant: a commit is recorded before it is acknowledged. One without a record is what a killed writer left; it is
recorded by the next writer if it is whole, and set aside otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from memstate_core.model.errors import LedgerDamaged
from memstate_core.state.files import file_digest, replace_file, sync_path
from memstate_core.state.ledger.beginning import Beginning
from memstate_core.state.ledger.chain import (
    CHAIN,
    Chain,
    beginning_line,
    changed_files,
    extend,
    next_line,
    read_chain,
)
from memstate_core.state.ledger.commits import (
    LAST_CHECKPOINT,
    LOG,
    added_data,
    commit_name,
    commits_after,
    is_whole,
    log_files,
    removed_data,
    set_aside,
    version_of,
)

REPLACED = "replaced-chain-{}.jsonl"
"""The file of a chain in whose place another one was begun."""
Active = Callable[[str], list[str]]
"""Lists the data files of the newest version of a table, as paths below its folder."""


_log = logging.getLogger("memstate.ledger")


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

    @property
    def begun(self) -> list[Beginning]:
        """Each time that the chain was begun anew, oldest first."""
        return self._chain().begun

    def lost(self, heads: Iterable[str]) -> list[str]:
        """What is wrong with the chain itself; the files that it names are not read.

        Args:
            heads: entries that it must have, as manifests of snapshots name them.
        """
        chain = self._chain()
        gone = [head for head in heads if not chain.knows(head)]
        return [
            *chain.problems,
            *(f"{CHAIN}: it lacks the entry {head}, of which a snapshot was made" for head in gone),
        ]

    def holds(self, head: str) -> bool:
        """Whether an entry is in the chain itself, not in one that was lost."""
        return head in self._chain().heads

    def changed(self) -> list[str]:
        """Files that lines of the chain name and that differ, or are missing though the log of commits needs them."""
        chain, found = self._chain(), list[str]()
        for table, recorded in chain.files.items():
            folder = self._root / table
            superseded = removed_data(folder)
            needed = {
                name: digest
                for name, digest in recorded.items()
                if name != LAST_CHECKPOINT and ((folder / name).exists() or name not in superseded)
            }
            found += changed_files(self._root, table, needed)
        return found

    def begin_anew(self, tables: Iterable[str], active: Active, beginning: Beginning) -> None:
        """Replaces the chain by one that records the files as they are now, in one step; the old file is kept.

        Raises:
            LedgerDamaged: a commit cannot be read, or names data that is not there.
        """
        old, chain = self._chain(), Chain()
        lines = [beginning_line([*old.begun, beginning])]
        chain.add(lines[0])
        for table in tables:
            if names := self._unrecorded(chain, table, active):
                self._flush(table, names)
                lines.append(next_line(chain, table, {name: file_digest(self._root / table / name) for name in names}))
                chain.add(lines[-1])
        if (path := self._root / CHAIN).exists():
            number = len(replaced_chains(self._root)) + 1
            replace_file(self._root / REPLACED.format(number), path.read_bytes())
        replace_file(path, b"".join(line + b"\n" for line in lines))
        self._read = None

    def damage(self, head: str | None = None, tables: Collection[str] | None = None) -> list[str]:
        """What was acknowledged and is missing or differs, one sentence each, after reading every recorded byte.

        Args:
            head: an entry that the chain must have, as a snapshot's manifest names it.
            tables: the tables to read; all of them if None.
        """
        chain = self._chain()
        problems = self.lost([] if head is None else [head])
        for table in chain.files if tables is None else chain.files.keys() & tables:
            mutable = {LAST_CHECKPOINT} if self._later(table) else set()
            files = {name: digest for name, digest in chain.files[table].items() if name not in mutable}
            problems += changed_files(self._root, table, files)
        if problems and self._chain() is not chain:  # a vacuum removed files meanwhile
            return self.damage(head, tables)
        return problems

    def versions_at(self, head: str) -> dict[str, int] | None:
        """The last commit of each table when an entry was the last one; None if the chain lacks the entry."""
        chain = read_chain(self._root, head)
        return chain.versions if chain.head == head else None

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

    def recover(self, tables: Iterable[str], active: Active, *, rewritten: bool = False) -> None:
        """Checks the last acknowledged commit of each table; completes or sets aside what a kill left after it.

        A ledger from before the chain is recorded as it is found, since all of it was acknowledged.

        Args:
            tables: all tables.
            active: lists their data files.
            rewritten: whether the tables were just rewritten, which leaves them without a chain; any other ledger of
                several commits without one gets a warning.

        Raises:
            LedgerDamaged: an acknowledged commit is missing or differs.
        """
        tables = list(tables)
        is_old = self._chain().head is None
        commits = sum(len(self._later(table)) for table in tables) if is_old else 0
        if commits > 1 and not rewritten:  # a single one is what a kill left of the first
            _log.warning("the ledger %s has no chain; its %d commits are recorded as they are", self._root, commits)
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
        chain = self._chain()
        if names := self._unrecorded(chain, table, active):
            self._flush(table, names)
            extend(self._root, chain, table, {name: file_digest(self._root / table / name) for name in names})
            self._read = self._signature(), chain

    def _unrecorded(self, chain: Chain, table: str, active: Active) -> list[str]:
        """The files of a table that a chain does not name yet."""
        folder, recorded = self._root / table, chain.files.get(table, {})
        log = [name for name in log_files(folder) if name not in recorded or name == LAST_CHECKPOINT]
        served = [] if recorded else active(table)
        self._refuse([f"{table}: {path} is missing" for path in served if not (folder / path).exists()])
        candidates = dict.fromkeys([*log, *self._data(table, log), *served])
        return [name for name in candidates if (folder / name).exists()]

    def _flush(self, table: str, names: Iterable[str]) -> None:
        folder = self._root / table
        for path in (*(folder / name for name in names), folder / LOG, folder, self._root):
            sync_path(path)

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


def replaced_chains(ledger: Path) -> list[Path]:
    """The files of chains in whose place others were begun."""
    return sorted(ledger.glob(REPLACED.format("*")))


def _mark(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written or replaced; zeros where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return found.st_size, found.st_mtime_ns, found.st_ino
