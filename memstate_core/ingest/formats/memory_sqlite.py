"""The SQLite file of a layered agent memory: blocks, events, facts, sessions, resources, relations, verifications.

Each row is one observation, mapped by `memstate_core.ingest.formats.shared.memory_tables`. Its id is
`memory-sqlite/TABLE/ID/HASH`, with the hash of what it says: the same row is a duplicate, and a row that has changed in
the meantime is a new observation about the same thing. The file is opened read-only and never written to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from typing import Any

from memstate_core.ingest.containers.source import Source
from memstate_core.ingest.formats.shared.base import Reader, Reading
from memstate_core.ingest.formats.shared.memory_tables import REFERABLE, TABLES
from memstate_core.ingest.formats.shared.message import refused_row
from memstate_core.ingest.formats.shared.sqlite_rows import Cells, Missing, SqliteFile, is_sqlite
from memstate_core.ingest.raw_rows import BrokenContainer, RawRow, RowAssembler
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.values import canonical

_HASH_LENGTH = 12
_EXPECTED = f"a SQLite file of an agent memory, with any of the tables {', '.join(TABLES)}"


def _recognises(source: Source) -> bool:
    return source.archive is None and is_sqlite(source.members[0].head)


def _rows(source: Source, reading: Reading) -> Iterator[RawRow]:
    try:
        with closing(SqliteFile(source.path)) as file:
            known = [table for table in TABLES if table in file.tables]
            if not known:
                found = ", ".join(sorted(file.tables)) or "none"
                raise BrokenContainer(f"its tables are {found}, expected {_EXPECTED}")
            memory = _Memory(file)
            for table in known:
                yield from memory.rows(table, reading.longest)
    except sqlite3.Error as problem:
        raise BrokenContainer(f"SQLite cannot read it on: {problem}") from None


class _Memory:
    """The rows of an open file as observations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def rows(self, table: str, longest: int) -> Iterator[RawRow]:
        """The rows of a table; one that lacks what its table requires is a refusal."""
        assembler = RowAssembler(longest)
        for number, cells in self._file.rows(table):
            try:
                raw = canonical(self._observation(table, cells))
            except Rejection as refused:
                shown = canonical(cells.shown())
                yield refused_row(number, table, shown, refused.reason, f"{table}, row {number}: {refused.detail}")
                continue
            row = assembler.finish(number, raw)
            if row is not None:
                yield RawRow(row.line, row.raw, row.length, row.sha256, table)

    def _observation(self, table: str, cells: Cells) -> Mapping[str, Any]:
        """A row as an observation.

        Raises:
            Rejection: a cell is missing, cannot be read, or refers to nothing.
        """
        said = TABLES[table](cells, self.named)
        said = {name: value for name, value in (cells.scoped() | said).items() if value is not None}
        digest = sha256(canonical(said)).hexdigest()[:_HASH_LENGTH]
        return {"observation_id": f"memory-sqlite/{table}/{cells.identity()}/{digest}", **said}

    def named(self, identity: str, table: str | None = None) -> str:
        """The observation of the row with an id.

        Args:
            identity: the id.
            table: the table that has it; every table of `REFERABLE` is searched without one.

        Raises:
            Rejection: no table has it, several have, or its row is refused itself.
        """
        tables = [each for each in ([table] if table else REFERABLE) if each in self._file.tables]
        found = [(each, row) for each in tables if (row := self._file.row(each, identity)) is not None]
        if not found:
            raise Missing(f"no row has the id {identity!r}, expected one in {', '.join(tables)}")
        if len(found) > 1:
            several = " and ".join(each for each, _ in found)
            raise Rejection(Reason.BAD_VALUE, f"{several} have the id {identity!r}, expected one table")
        try:
            return str(self._observation(*found[0])["observation_id"])
        except Rejection as refused:
            raise Missing(f"the row {identity!r} of {found[0][0]}, which it names, is refused: {refused}") from None


READER = Reader(_EXPECTED, _recognises, _rows)
