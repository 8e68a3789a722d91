"""The ledger: append-only Delta tables, the only source of truth.

`evidence` holds accepted observations, `transitions` recorded decisions, `quarantine` refused rows, and
`quarantine_actions` what was done about them. A batch carries an application transaction id. Delta records such
an id but does not enforce it, so `append` asks for it first, under the ledger's own lock.

Invariant: when `append` returns, its batch is on disk, and the chain has the digest of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from memstate_core.model.errors import CompactionRefused, LedgerDamaged
from memstate_core.model.frames import Schema, conform, empty
from memstate_core.model.ledger_tables import ACCESSES, EVIDENCE, QUARANTINE, QUARANTINE_ACTIONS, TRANSITIONS
from memstate_core.state.files import require_space
from memstate_core.state.ledger.beginning import Beginning
from memstate_core.state.ledger.commits import commit_name, set_aside
from memstate_core.state.ledger.compaction import COMPACT_FILES, KEEP_LOG, join_files, row_hashes, small_bytes
from memstate_core.state.ledger.keeper import Keeper
from memstate_core.state.ledger.rewrite import Change, complete_rewrite, rewrite
from memstate_core.state.lock import exclusive

TABLES: dict[str, Schema] = {
    "evidence": EVIDENCE,
    "transitions": TRANSITIONS,
    "accesses": ACCESSES,
    "quarantine": QUARANTINE,
    "quarantine_actions": QUARANTINE_ACTIONS,
}
Mark = tuple[int, int, int, int]
"""A version of a table, and which file its commit is: its number, and inode, size and time of the file."""

_READ_ERRORS = (OSError, DeltaError, pl.exceptions.PolarsError)


class Ledger:
    """The tables of one home.

    Args:
        root: the folder of the tables.
        lock_wait_seconds: how long to wait for other writers.
        checked: compare data files with their digests before rows are read from them.

    Attributes:
        root: the folder of the tables.
        chain: the digests of their files.
    """

    def __init__(self, root: Path, lock_wait_seconds: float = 30.0, *, checked: bool = False) -> None:
        self.root = root
        self._checked = checked
        self._wait = lock_wait_seconds
        self.chain = Keeper(root)
        self._listed: dict[str, tuple[Mark, list[str]]] = {}
        self._kept: dict[tuple[str, str], tuple[Mark, pl.DataFrame]] = {}

    @contextmanager
    def writing(self, holder: str) -> Iterator[None]:
        """Holds the ledger's lock, so that nothing changes between a read and the append that follows.

        A commit that a killed writer did not finish is completed first, or set aside if it is not whole; so is a
        rewriting of tables.

        Raises:
            StoreLocked: another process kept it for longer than the wait allows.
            LedgerDamaged: an acknowledged commit is missing or differs, or the block failed to read a changed file.
        """
        with exclusive(self.root / "ledger.lock", holder, self._wait):
            rewritten = complete_rewrite(self.root)
            self.chain.recover(TABLES, self._active, rewritten=rewritten)
            with self.damage_named():
                yield

    @contextmanager
    def damage_named(self) -> Iterator[None]:
        """Names the damage of the ledger where rows cannot be read.

        Raises:
            LedgerDamaged: they cannot, since the ledger is not as it was written.
        """
        try:
            yield
        except _READ_ERRORS as error:
            if problems := self.chain.damage():
                raise LedgerDamaged(str(self.root), problems) from error
            raise

    def begin_chain_anew(self, holder: str, prove: Callable[[], Beginning]) -> None:
        """Begins the chain anew, under the ledger's lock.

        Args:
            holder: who holds the lock.
            prove: compares the ledger with what it must hold, and returns the record; what it raises leaves the chain.

        Raises:
            StoreLocked: another process kept the lock for longer than the wait allows.
        """
        with exclusive(self.root / "ledger.lock", holder, self._wait):
            self.chain.begin_anew(TABLES, self._active, prove())

    def version(self, table: str) -> int | None:
        """The table's newest version, or None where nothing was written yet."""
        delta = self._open(table)
        return None if delta is None else delta.version()

    def scan(self, table: str, version: int | None = None) -> pl.LazyFrame:
        """The rows of a table, at its newest version or at a given one, lazily."""
        return self._rows(table, self.files(table, version))

    def kept(self, table: str, version: int, name: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Few rows of a version that the steps of a run ask for again and again; a version never changes.

        They are read again for another version, or if the file of its commit is another one.

        Args:
            table: which table.
            version: the version that the run pinned.
            name: what they are, other than all else that is kept of the table.
            read: reads them.
        """
        mark, found = self._mark(table, version), self._kept.get((table, name))
        if found is not None and found[0] == mark:
            return found[1]
        rows = read()
        if mark is not None:
            self._kept[table, name] = mark, rows
        return rows

    def since(self, table: str, version: int | None) -> pl.LazyFrame:
        """Rows of the files that a table did not have at a version: all later rows, and older ones compacted since."""
        delta = self._open(table)
        if delta is None or version is None:
            return self.scan(table)
        return self._rows(table, sorted(set(_files(delta)).difference(self._files_at(table, version))))

    def count(self, table: str) -> int:
        """How many rows a table holds."""
        return int(self.scan(table).select(pl.len()).collect().item())

    def last_transaction(self, table: str, app_id: str) -> int | None:
        """The newest application transaction version that a table has recorded for an id."""
        delta = self._open(table)
        return None if delta is None else delta.transaction_version(app_id)

    def append(self, table: str, rows: pl.DataFrame, app_id: str, app_version: int = 1) -> bool:
        """Appends a batch unless the table already knows its transaction id; call it inside `writing`.

        Returns:
            Whether the batch was written now.
        """
        delta = self._open(table)
        known = None if delta is None else delta.transaction_version(app_id)
        if known is not None and known >= app_version:
            return False
        write_deltalake(
            delta or self._uri(table),
            conform(rows, TABLES[table]),
            mode="append",
            configuration={"delta.dataSkippingNumIndexedCols": "0"} if delta is None else None,
            commit_properties=CommitProperties(app_transactions=[Transaction(app_id, app_version)]),
            post_commithook_properties=KEEP_LOG,
        )
        written = delta or DeltaTable(self._uri(table))
        if small_bytes(written).len() > COMPACT_FILES:
            join_files(written)
        self.chain.record(table, self._active)
        return True

    def compact(self, table: str) -> bool:
        """Joins the small data files of a table; call it inside `writing`.

        Returns:
            Whether there were files to join.

        Raises:
            CompactionRefused: the joined files have other rows; the table stays as it was.
            DiskFull: the disk has no room for the joined files.
        """
        delta = self._open(table)
        if delta is None or (small := small_bytes(delta)).len() < 2:
            return False
        require_space(self.root, int(small.sum()))
        version, before = delta.version(), set(_files(delta))
        join_files(delta)
        after = set(self._active(table))
        if not self._hashes(table, before - after).equals(self._hashes(table, after - before)):
            set_aside(self.root / table, version + 1)
            raise CompactionRefused(table, str(self.root))
        self.chain.record(table, self._active)
        return after != before

    def rewrite(self, changes: Mapping[str, Change]) -> None:
        """Rewrites tables in all their versions, and starts the chain anew; call it inside `writing`.

        Args:
            changes: what becomes of the rows of each table.
        """
        rewrite(self.root, TABLES, changes)
        self._listed.clear()
        self._kept.clear()
        self.chain.recover(TABLES, self._active, rewritten=True)

    def files(self, table: str, version: int | None = None) -> list[str]:
        """The data files of a table's newest version, or of a given one, relative to the table."""
        return self._active(table) if version is None else self._files_at(table, version)

    def _hashes(self, table: str, files: set[str]) -> pl.DataFrame:
        """The sorted hashes of the rows of some data files, one file in memory at a time."""
        hashes = [row_hashes(self._rows(table, [file]).collect()) for file in files]
        return pl.concat(hashes).sort(pl.all()) if hashes else pl.DataFrame()

    def _open(self, table: str, version: int | None = None) -> DeltaTable | None:
        try:
            return DeltaTable(self._uri(table), version=version)
        except TableNotFoundError:
            return None

    def _active(self, table: str) -> list[str]:
        """The data files of a table's newest version, relative to it."""
        delta = self._open(table)
        return [] if delta is None else _files(delta)

    def _files_at(self, table: str, version: int) -> list[str]:
        """The data files of a version, relative to the table.

        The answer for the last version asked of each table is kept: a version never changes, and each step of a run
        reads the version that the run pinned. It is read again if the file of its commit is another one.
        """
        mark = self._mark(table, version)
        kept = self._listed.get(table)
        if kept is not None and kept[0] == mark:
            return kept[1]
        delta = self._open(table, version)
        files = [] if delta is None else _files(delta)
        if mark is not None:
            self._listed[table] = mark, files
        return files

    def _mark(self, table: str, version: int) -> Mark | None:
        commit = self.root / table / commit_name(version)
        found = commit.stat() if commit.exists() else None
        return None if found is None else (version, found.st_ino, found.st_size, found.st_mtime_ns)

    def _uri(self, table: str) -> str:
        """The table's URI, with special characters of its path escaped."""
        return (self.root / table).absolute().as_uri()

    def _rows(self, table: str, files: list[str]) -> pl.LazyFrame:
        """The rows of a table's data files; their paths are literal, not glob patterns."""
        if not files:
            return empty(TABLES[table]).lazy()
        if self._checked:
            self.chain.require_data(table, files)
        paths = [self.root / table / file for file in files]
        return pl.scan_parquet(paths, glob=False).select(*TABLES[table]).cast(TABLES[table])  # type: ignore[arg-type]


def _files(delta: DeltaTable) -> list[str]:
    """The data files of a table's loaded version, relative to it."""
    return [str(path) for path in delta.get_add_actions().column("path").to_pylist()]
