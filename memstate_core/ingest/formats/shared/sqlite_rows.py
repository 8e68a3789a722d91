"""Rows of a SQLite file, read-only and one at a time, with columns in any spelling.

Invariant: nothing is written, neither to the file nor beside it. A file with changes that are only in its journal is
refused, since reading it without them would lose them in silence, and reading it with them would write.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from memstate_core.ingest.formats.shared.message import moment
from memstate_core.ingest.raw_rows import BrokenContainer
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.scope import parse_scope

_MAGIC: Final = b"SQLite format 3\0"
_JOURNALS: Final = ("-wal", "-journal")
_MOST_BYTES: Final = 64 << 20
"""The largest row that is read; a file with a larger one is damaged or hostile."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_TRUE, _FALSE = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})


def is_sqlite(head: bytes) -> bool:
    """Whether a file that begins like this is a SQLite database."""
    return head.startswith(_MAGIC)


class Missing(Rejection):
    """A row lacks something that it needs."""

    def __init__(self, detail: str) -> None:
        super().__init__(Reason.MISSING_CONTENT, detail)


class Cells:
    """The cells of a row by column in snake_case; those without a value are absent."""

    def __init__(self, number: int, cells: Mapping[str, Any]) -> None:
        self._number = number
        self._cells = {snake(name): value for name, value in cells.items() if value is not None}

    def shown(self) -> dict[str, str]:
        """The cells as text, for a row that is refused."""
        return {name: _text(value, "replace") for name, value in self._cells.items()}

    def identity(self) -> str:
        """The row's own id, else its number."""
        return self.text("id") or str(self._number)

    def text(self, *names: str) -> str | None:
        """The first of these cells that is not blank, as text."""
        for name in names:
            if name in self._cells:
                try:
                    found = _text(self._cells[name], "strict")
                except UnicodeDecodeError:
                    raise Rejection(Reason.NOT_UTF8, f"{name} is not UTF-8, expected text") from None
                if found.strip():
                    return found
        return None

    def need(self, *names: str) -> str:
        """As `text`, for a cell without which the row says nothing.

        Raises:
            Rejection: there is none.
        """
        found = self.text(*names)
        if found is None:
            raise Missing(f"it has no {' nor '.join(names)}, expected a text")
        return found

    def time(self, *names: str) -> str | None:
        """The first of these cells as a time: ISO 8601, or seconds or milliseconds since 1970."""
        for name in names:
            if isinstance(value := self._cells.get(name), int | float):
                return moment(value)
            if (found := self.text(name)) is not None:
                return found
        return None

    def whole(self, *names: str) -> int | None:
        """The first of these cells as a whole number.

        Raises:
            Rejection: it is something else.
        """
        found = self.text(*names)
        try:
            return None if found is None else int(found)
        except ValueError:
            raise Rejection(Reason.BAD_VALUE, f"{names[0]} is {found!r}, expected a whole number") from None

    def share(self, name: str) -> float | None:
        """A cell as a number.

        Raises:
            Rejection: it is none.
        """
        found = self.text(name)
        try:
            return None if found is None else float(found)
        except ValueError:
            raise Rejection(Reason.BAD_VALUE, f"{name} is {found!r}, expected a number") from None

    def flag(self, name: str) -> bool | None:
        """A cell as yes or no.

        Raises:
            Rejection: it is neither.
        """
        found = (self.text(name) or "").strip().lower()
        if found and found not in _TRUE | _FALSE:
            raise Rejection(Reason.BAD_VALUE, f"{name} is {found!r}, expected 0 or 1")
        return found in _TRUE if found else None

    def json(self, *names: str) -> Any:
        """The first of these cells as JSON; a text that is none stands for itself."""
        found = self.text(*names)
        try:
            return None if found is None else msgspec.json.decode(found)
        except (msgspec.MsgspecError, RecursionError):
            return found

    def texts(self, *names: str) -> list[str] | None:
        """The first of these cells as a list of texts: a JSON array, or one text.

        Raises:
            Rejection: it is something else.
        """
        found = self.json(*names)
        if found is None:
            return None
        items = found if isinstance(found, list) else [found]
        if not all(isinstance(each, str | int) for each in items):
            raise Rejection(Reason.BAD_VALUE, f"{names[0]} is {found!r}, expected a JSON array of texts")
        return [str(each) for each in items]

    def scoped(self) -> dict[str, Any]:
        """The scope of the row as keys of an observation: `TYPE:ID`, an object, or two columns; none without one.

        Raises:
            Rejection: it is no scope.
        """
        found = self.json("scope")
        if found is None and (kind := self.text("scope_type")) is not None:
            found = f"{kind}:{self.text('scope_id') or ''}"
        if isinstance(found, dict):
            found = f"{found.get('type') or found.get('kind')}:{found.get('id') or ''}"
        if found is None:
            return {}
        try:
            kind, _, name = parse_scope(str(found)).partition(":")
        except ValueError as problem:
            raise Rejection(Reason.BAD_VALUE, f"scope: {problem}") from None
        return {"scope": {"type": kind, "id": name} if name else {"type": kind}}


class SqliteFile:
    """An open file.

    Raises:
        BrokenContainer: it is packed, or has changes that are only in a journal.
        sqlite3.Error: it is damaged.
    """

    def __init__(self, path: Path) -> None:
        _check_plain(path)
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(address, uri=True)
        try:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
            self._connection.text_factory = bytes
            self._connection.execute("PRAGMA trusted_schema = OFF")
            names = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.Error:
            self._connection.close()
            raise
        self.tables = frozenset(_text(name, "replace") for (name,) in names)

    def rows(self, table: str) -> Iterator[tuple[int, Cells]]:
        """The rows of a table in the order in which they were added, each with its rowid."""
        yield from self._selected(table, f"ORDER BY {self._number(table)}")

    def row(self, table: str, identity: str) -> Cells | None:
        """The row of a table with an id."""
        where = "WHERE id = ?1 OR id = CAST(?1 AS INTEGER)" if identity.isdecimal() else "WHERE id = ?1"
        if "id" not in self._columns(table):
            return None
        return next((cells for _, cells in self._selected(table, where, identity)), None)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _selected(self, table: str, rest: str, *given: str) -> Iterator[tuple[int, Cells]]:
        cursor = self._connection.execute(f'SELECT {self._number(table)}, * FROM "{table}" {rest}', given)
        names = [column[0] for column in cursor.description[1:]]
        for place, (number, *cells) in enumerate(cursor, 1):
            line = number if isinstance(number, int) and number > 0 else place
            yield line, Cells(line, dict(zip(names, cells, strict=True)))

    def _number(self, table: str) -> str:
        """What numbers the rows: the rowid, where the table has one."""
        try:
            self._connection.execute(f'SELECT rowid FROM "{table}" LIMIT 0')
        except sqlite3.OperationalError:
            return "1"
        return "rowid"

    def _columns(self, table: str) -> list[str]:
        return [column[0] for column in self._connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description]


def _check_plain(path: Path) -> None:
    with path.open("rb") as file:
        if not is_sqlite(file.read(len(_MAGIC))):
            raise BrokenContainer("it is a packed SQLite file, expected it unpacked")
    for suffix in _JOURNALS:
        journal = path.with_name(path.name + suffix)
        if journal.exists() and journal.stat().st_size:
            raise BrokenContainer(
                f"{journal.name} holds changes that are not in the file yet; close the program that writes it, or "
                f"import a copy: sqlite3 {path.name} \"VACUUM INTO 'copy.db'\""
            )


def snake(name: str) -> str:
    """A name in snake_case."""
    return _CAPITAL.sub(r"_\1", name).lower()


def _text(value: Any, errors: str) -> str:
    return value.decode("utf-8", errors) if isinstance(value, bytes) else str(value)
