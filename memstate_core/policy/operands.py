"""Operands of conditions (columns and literals with their types), and the comparison of two operands."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.policy.lexer import ConditionError, Token
from memstate_core.policy.vocabularies import Vocabularies

COMPARISONS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "==": operator.eq,
    "!=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The operation of each sign; `!=` negates `==`, also where values are missing."""
_CONSTANTS = {"true": True, "false": False, "null": None}

Type = Literal["string", "number", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison; `literal` is its value, and None for a column or null."""

    expr: pl.Expr
    type: Type
    token: Token
    literal: str | float | None = None

    def __str__(self) -> str:
        return "null" if self.type == "null" else f"{self.token} (a {self.type})"


def operand(token: Token, columns: Schema) -> Operand:
    """The operand that a token denotes.

    Raises:
        ConditionError: it is neither a literal nor a known column.
    """
    if token.kind == "string":
        text = token.text[1:-1]
        return Operand(pl.lit(text), "string", token, text)
    if token.kind == "number":
        return _number(token)
    if token.kind != "word" or token.text in ("and", "or", "not", "in"):
        raise ConditionError(f"found {token}, expected a column or a value", token.column)
    if token.text in _CONSTANTS:
        value = _CONSTANTS[token.text]
        return Operand(pl.lit(value), "null" if value is None else "boolean", token, value)
    return _column(token, columns)


def compared(left: Operand, sign: Token, right: Operand) -> pl.Expr:
    """A comparison, true or false for every row.

    Raises:
        ConditionError: the operands have different types, or the sign is not defined for their type.
    """
    if "null" in (left.type, right.type):
        if sign.text not in ("==", "!="):
            raise ConditionError(f"found {sign} with null, expected == or !=", sign.column)
        holds = (left if right.type == "null" else right).expr.is_null()
    else:
        require_like(left, right)
        if left.type == "boolean" and sign.text not in ("==", "!="):
            raise ConditionError(f"found {sign} between booleans, expected == or !=", sign.column)
        holds = COMPARISONS[sign.text](left.expr, right.expr).fill_null(False)
    return ~holds if sign.text == "!=" else holds


def require_known(column: Operand, value: Operand, vocabularies: Vocabularies) -> None:
    """Raises ConditionError, at the value, if a column with a closed vocabulary never has it."""
    find = vocabularies.get(column.token.text) if column.token.kind == "word" else None
    if find is not None and isinstance(value.literal, str) and (problem := find(value.literal)):
        raise ConditionError(problem, value.token.column)


def require_like(left: Operand, right: Operand) -> None:
    """Raises ConditionError, at the right operand, unless both have one type."""
    if left.type != right.type:
        raise ConditionError(f"found {right} beside {left}, expected two of one type", right.token.column)


def _column(token: Token, columns: Schema) -> Operand:
    if token.text not in columns:
        near = get_close_matches(token.text.lower(), [*columns, *_CONSTANTS], 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        known = ", ".join(columns)
        raise ConditionError(f"found {token}{meant}, expected one of the columns {known}", token.column)
    dtype = columns[token.text]
    if dtype in (pl.String, pl.Boolean):
        return Operand(pl.col(token.text), "string" if dtype == pl.String else "boolean", token)
    return Operand(pl.col(token.text).cast(pl.Float64), "number", token)


def _number(token: Token) -> Operand:
    value = float(token.text)
    if math.isinf(value):
        raise ConditionError("found a number that is too large", token.column)
    return Operand(pl.lit(value), "number", token, value)
