"""The lexer of conditions, and the error that refers to a column of their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_LENGTH = 4096
"""The most characters of a condition."""

_TOKEN = re.compile(
    r"""(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<string>'[^']*'|"[^"]*")
      | (?P<word>[^\W\d]\w*)
      | (?P<sign>==|!=|<=|>=|<>|&&|\|\||[<>()\[\],=!])""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ELSEWHERE = {"=": "==", "<>": "!=", "&&": "and", "||": "or", "!": "not"}
"""Operators of other languages, with the operator that conditions have instead."""

Kind = Literal["number", "string", "word", "sign", "end"]


class ConditionError(ValueError):
    """A condition cannot be parsed: the `problem`, and the `column` of the text, counted from 1."""

    def __init__(self, problem: str, column: int) -> None:
        super().__init__(problem, column)
        self.problem, self.column = problem, column

    def __str__(self) -> str:
        return f"at column {self.column} of the condition: {self.problem}"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; the text of a string includes its quotes."""

    kind: Kind
    text: str
    column: int

    def __str__(self) -> str:
        return self.text if self.kind != "end" else "the end"


def tokenize(text: str) -> list[Token]:
    """Splits a condition into tokens; the last is of the kind `end`.

    Raises:
        ConditionError: the text is too long, a string is not closed, or a character belongs to no token.
    """
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"found {len(text)} characters, expected at most {MAX_LENGTH}", MAX_LENGTH + 1)
    if surrogate := _LONE_SURROGATE.search(text):
        raise ConditionError("found half a character, expected Unicode text", surrogate.start() + 1)
    found: list[Token] = []
    place = _space(text, 0)
    while match := _TOKEN.match(text, place):
        found.append(_token(match))
        place = _space(text, match.end())
    if place < len(text):
        raise ConditionError(_no_token(text[place]), place + 1)
    return [*found, Token("end", "", len(text) + 1)]


def _space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _token(match: re.Match[str]) -> Token:
    kind: Kind = next(kind for kind in ("number", "string", "word", "sign") if match[kind] is not None)
    if match[0] in _ELSEWHERE:
        raise ConditionError(f"found {match[0]}, expected {_ELSEWHERE[match[0]]}", match.start() + 1)
    return Token(kind, match[0], match.start() + 1)


def _no_token(sign: str) -> str:
    if sign in "\"'":
        return f"found a string that does not end, expected another {sign}"
    return f"found {sign!r}, expected a column, a value or an operator"
