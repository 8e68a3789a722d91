"""Positions of values in the text of a TOML file, which `tomllib` does not report.

The text has been parsed before and is valid, so the scanner checks nothing: it skips comments and strings and
descends into arrays and inline tables.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

Steps = tuple[str | int, ...]
"""The path of a value: keys of tables and indices of arrays."""

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"""+' r"|'''.*?'''+" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'", re.DOTALL)
_BARE = re.compile(r"[^,\]}#\n]+")
_NAME = re.compile(r"[\w-]+")
_UNIT = re.compile(r"(?P<nothing>\\[ \t]*\n\s*)|\\U.{8}|\\u.{4}|\\.|.", re.DOTALL)
_QUOTES = ('"""', "'''", '"', "'")


def positions(text: str) -> dict[Steps, int]:
    """The offset of each value (its first character) and of each table (the `[` of its first header)."""
    return _Scanner(text).document()


def inside(text: str, start: int, count: int) -> int:
    """The offset of a character of a string's value, with escapes and line continuations taken into account.

    Args:
        text: the TOML text.
        start: the offset of the string's opening quote.
        count: the number of characters of the value before it.
    """
    quote = next(quote for quote in _QUOTES if text.startswith(quote, start))
    place = start + len(quote)
    if len(quote) == 3 and text.startswith("\n", place):
        place += 1
    if quote[0] == "'":
        return place + count
    units = (unit.start() for unit in _UNIT.finditer(text, place) if unit["nothing"] is None)
    return next(offset for number, offset in enumerate(units) if number == count)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, in characters and counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def nearest(found: Mapping[Steps, int], steps: Steps) -> int | None:
    """The offset of a value, or of the innermost enclosing table or array; None if there is none."""
    around = (steps[:length] for length in range(len(steps), 0, -1))
    return next((found[one] for one in around if one in found), None)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.found: dict[Steps, int] = {}
        self.lengths: dict[Steps, int] = {}

    def document(self) -> dict[Steps, int]:
        table: Steps = ()
        while (start := self.skip()) < len(self.text):
            if self.text[start] == "[":
                table = self.header()
                self.found.setdefault(table, start)
            else:
                self.pair(table)
        return self.found

    def header(self) -> Steps:
        start, many = self.place, self.text.startswith("[[", self.place)
        self.place += 1 + many
        *above, last = self.key()
        self.place += 1 + many
        steps: Steps = ()
        for name in above:
            steps = self.newest((*steps, name))
        steps = (*steps, last)
        if many:
            self.lengths[steps] = self.lengths.get(steps, 0) + 1
            self.found.setdefault(steps, start)
        return self.newest(steps)

    def newest(self, steps: Steps) -> Steps:
        """The last element, if this is an array of tables."""
        return (*steps, self.lengths[steps] - 1) if steps in self.lengths else steps

    def pair(self, table: Steps) -> None:
        names = self.key()
        self.place += 1
        self.value((*table, *names))

    def key(self) -> list[str]:
        names: list[str] = []
        while True:
            self.skip()
            if self.text[self.place] in "\"'":
                names.append(tomllib.loads(f"name = {self.take(_STRING)}")["name"])
            else:
                names.append(self.take(_NAME))
            if self.text[self.skip()] != ".":
                return names
            self.place += 1

    def value(self, steps: Steps) -> None:
        start = self.skip()
        self.found.setdefault(steps, start)
        if self.text[start] == "[":
            self.array(steps)
        elif self.text[start] == "{":
            self.inline_table(steps)
        else:
            self.take(_STRING if self.text[start] in "\"'" else _BARE)

    def array(self, steps: Steps) -> None:
        self.place += 1
        position = 0
        while self.text[self.skip(",")] != "]":
            self.value((*steps, position))
            position += 1
        self.place += 1

    def inline_table(self, steps: Steps) -> None:
        self.place += 1
        while self.text[self.skip(",")] != "}":
            self.pair(steps)
        self.place += 1

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.place)
        if match is None:
            raise ValueError(f"no valid TOML at offset {self.place}")
        self.place = match.end()
        return match[0]

    def skip(self, sign: str = "") -> int:
        """Skips white space, comments and any number of a sign; returns the offset of what follows."""
        self.take(_SPACE)
        while sign and self.text.startswith(sign, self.place):
            self.place += 1
            self.take(_SPACE)
        return self.place
