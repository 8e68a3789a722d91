"""Conditions of rules: a small comparison language, parsed into a Polars expression.

    condition  = both {"or" both}
    both       = one {"and" one}
    one        = "not" one | "(" condition ")" | comparison
    comparison = operand ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
               | operand ["not"] "in" "[" literal {"," literal} "]"
               | boolean column | "true" | "false"
    operand    = column | literal
    literal    = 'text' | "text" | number | "true" | "false" | "null"

Every comparison is true or false. With a missing value it is false; `!=` and `not in` negate `==` and `in`, so they
are true. `null` is allowed with `==` and `!=` only and tests whether a value is missing. Strings are ordered by code
point and have no escapes. `tests/benchmarks/README.md` compares the language with CEL.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.policy.lexer import ConditionError, Token, tokenize
from memstate_core.policy.operands import COMPARISONS, Operand, compared, operand, require_known, require_like
from memstate_core.policy.vocabularies import Vocabularies

__all__ = ["MAX_DEPTH", "ConditionError", "parse_condition"]

NO_VOCABULARIES: Vocabularies = {}
MAX_DEPTH = 64
"""How deep parentheses and `not` may nest."""


def parse_condition(text: str, columns: Schema, vocabularies: Vocabularies = NO_VOCABULARIES) -> pl.Expr:
    """Parses a condition.

    Args:
        text: the condition.
        columns: the columns that it may refer to, with their types.
        vocabularies: columns that have certain words only, which a comparison may name.

    Returns:
        A boolean expression that is never null; without columns it is a single value.

    Raises:
        ConditionError: the text is not a condition; says what was found, what was expected, and at which column.
    """
    parser = _Parser(tokenize(text), columns, vocabularies)
    condition = parser.either(0)
    parser.expect("", "'and', 'or' or the end")
    return condition


class _Parser:
    """A recursive-descent parser: one method per rule of the grammar."""

    def __init__(self, found: list[Token], columns: Schema, vocabularies: Vocabularies) -> None:
        self.tokens, self.columns, self.vocabularies = found, columns, vocabularies
        self.place = 0

    def either(self, depth: int) -> pl.Expr:
        parts = [self.both(depth)]
        while self.took("or"):
            parts.append(self.both(depth))
        return pl.any_horizontal(parts) if len(parts) > 1 else parts[0]

    def both(self, depth: int) -> pl.Expr:
        parts = [self.one(depth)]
        while self.took("and"):
            parts.append(self.one(depth))
        return pl.all_horizontal(parts) if len(parts) > 1 else parts[0]

    def one(self, depth: int) -> pl.Expr:
        start = self.next
        if self.took("not"):
            return ~self.one(_deeper(depth, start))
        if self.took("("):
            condition = self.either(_deeper(depth, start))
            self.expect(")", "'and', 'or' or ')'")
            return condition
        return self.comparison()

    def comparison(self) -> pl.Expr:
        left, sign = self.operand(), self.next
        if self.took(*COMPARISONS):
            condition = self.compared(left, sign, self.operand())
        elif self.took("not"):
            self.expect("in", "'in' after 'not'")
            condition = ~self.among(left)
        elif self.took("in"):
            condition = self.among(left)
        elif left.type == "boolean":
            condition = left.expr.fill_null(False)
        else:
            raise ConditionError(f"found {sign} after {left}, expected a comparison", sign.column)
        if self.next.text in COMPARISONS:
            raise ConditionError(f"found {self.next} after a comparison, expected 'and' or 'or'", self.next.column)
        return condition

    def compared(self, left: Operand, sign: Token, right: Operand) -> pl.Expr:
        condition = compared(left, sign, right)
        if sign.text in ("==", "!="):
            require_known(left, right, self.vocabularies)
            require_known(right, left, self.vocabularies)
        return condition

    def among(self, left: Operand) -> pl.Expr:
        self.expect("[", "a list in brackets")
        values = [self.listed(left)]
        while self.took(","):
            values.append(self.listed(left))
        self.expect("]", "',' or ']'")
        return left.expr.is_in([value.literal for value in values]).fill_null(False)

    def listed(self, left: Operand) -> Operand:
        value = self.operand()
        if value.literal is None:
            found = "null, which goes with == and != only" if value.type == "null" else f"column {value.token}"
            raise ConditionError(f"found {found}, expected a literal in the list", value.token.column)
        require_like(left, value)
        require_known(left, value, self.vocabularies)
        return value

    def operand(self) -> Operand:
        token = self.next
        self.place += token.kind != "end"
        return operand(token, self.columns)

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def took(self, *texts: str) -> bool:
        """Consumes the next token if it is one of these."""
        fits = self.next.text in texts
        self.place += fits
        return fits

    def expect(self, text: str, expected: str) -> None:
        if self.next.text != text:
            raise ConditionError(f"found {self.next}, expected {expected}", self.next.column)
        self.place += self.next.kind != "end"


def _deeper(depth: int, start: Token) -> int:
    if depth == MAX_DEPTH:
        raise ConditionError(f"expected at most {MAX_DEPTH} of parentheses and 'not' in one another", start.column)
    return depth + 1
