"""Conditions: their value on every row, nulls included, and errors that point at the character."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstate_core.model.frames import Schema
from memstate_core.policy.conditions import MAX_DEPTH, ConditionError, parse_condition
from memstate_core.policy.lexer import MAX_LENGTH
from memstate_core.policy.rules import RULE_COLUMNS

COLUMNS: Schema = {
    "kind": pl.String, "title": pl.String, "salience": pl.Float64, "evidence": pl.Int64,
    "old": pl.Boolean, "used": pl.Boolean,
}  # fmt: skip
TYPES = {"kind": "string", "title": "string", "salience": "number", "evidence": "number", "old": "boolean"}
Row = dict[str, Any]
Condition = tuple[str, Callable[[Row], bool]]
"""A condition's text, and what it means for a row."""


def holds(text: str, **row: Any) -> bool:
    frame = pl.DataFrame({name: [row.get(name)] for name in COLUMNS}, schema=COLUMNS)
    return frame.select(value=parse_condition(text, COLUMNS))["value"].to_list() == [True]


def refused(text: str, columns: Schema = COLUMNS) -> ConditionError:
    with pytest.raises(ConditionError) as error:
        parse_condition(text, columns)
    assert str(error.value) == f"at column {error.value.column} of the condition: {error.value.problem}"
    assert 1 <= error.value.column <= len(text) + 1
    return error.value


# Against a plain evaluator

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
texts = st.text(st.sampled_from("ab é\\\U0001f600"), max_size=2)
numbers = st.integers(-3, 3) | st.sampled_from((-0.5, 0.25, 1.5))
VALUES: dict[str, st.SearchStrategy[Any]] = {"string": texts, "number": numbers, "boolean": st.booleans()}
rows = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.none() | texts,
            "title": st.none() | texts,
            "salience": st.none() | numbers.map(float),
            "evidence": st.none() | st.integers(-3, 3),
            "old": st.none() | st.booleans(),
            "used": st.none() | st.booleans(),
        }
    ),
    max_size=4,
)


def spelt(value: Any, quote: str = "'") -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{quote}{value}{quote}" if isinstance(value, str) else str(value)


@st.composite
def operands(draw: st.DrawFn, kind: str) -> tuple[str, Callable[[Row], Any]]:
    if draw(st.booleans()):
        column = draw(st.sampled_from([name for name, one in TYPES.items() if one == kind]))
        return column, lambda row: row[column]
    value = draw(VALUES[kind])
    return spelt(value, draw(st.sampled_from("'\""))), lambda _: value


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    kind = draw(st.sampled_from(sorted(VALUES)))
    sign = draw(st.sampled_from(["==", "!="] if kind == "boolean" else sorted(SIGNS)))
    (left, of_left), (right, of_right) = draw(operands(kind)), draw(operands(kind))

    def meaning(row: Row) -> bool:
        if of_left(row) is None or of_right(row) is None:
            return sign == "!="
        return SIGNS[sign](of_left(row), of_right(row))

    return f"{left}{draw(st.sampled_from(('', ' ')))}{sign}\n{right}", meaning


@st.composite
def memberships(draw: st.DrawFn) -> Condition:
    kind = draw(st.sampled_from(sorted(VALUES)))
    left, of_left = draw(operands(kind))
    values, opposite = draw(st.lists(VALUES[kind], min_size=1, max_size=3)), draw(st.booleans())
    text = f"{left} {'not ' if opposite else ''}in [{', '.join(map(spelt, values))}]"
    return text, lambda row: (of_left(row) in values) != opposite


@st.composite
def questions_for_null(draw: st.DrawFn) -> Condition:
    (text, of), missing = draw(operands(draw(st.sampled_from(sorted(VALUES))))), draw(st.booleans())
    sides = draw(st.permutations([text, "null"]))
    return f"{sides[0]} {'==' if missing else '!='} {sides[1]}", lambda row: (of(row) is None) == missing


@st.composite
def booleans(draw: st.DrawFn) -> Condition:
    text, of = draw(operands("boolean"))
    return text, lambda row: of(row) is True


@st.composite
def joined(draw: st.DrawFn, parts: st.SearchStrategy[Condition]) -> Condition:
    """Parts in parentheses, joined by one word or negated."""
    word, some = draw(st.sampled_from(("and", "or", "not"))), draw(st.lists(parts, min_size=1, max_size=3))
    inner, meanings = [f"({text})" for text, _ in some], [of for _, of in some]
    if word == "not":
        return f"not {inner[0]}", lambda row: not meanings[0](row)
    every = all if word == "and" else any
    return f" {word} ".join(inner), lambda row: every(of(row) for of in meanings)


conditions = st.recursive(comparisons() | memberships() | questions_for_null() | booleans(), joined, max_leaves=8)


@given(condition=conditions, of=rows)
def test_a_condition_says_of_every_row_what_a_plain_evaluator_says(condition: Condition, of: list[Row]) -> None:
    text, meaning = condition
    frame = pl.DataFrame(of, schema=COLUMNS)
    found = frame.with_columns(_found=parse_condition(text, COLUMNS))["_found"]
    assert found.to_list() == [meaning(row) for row in of]
    assert found.dtype == pl.Boolean


flat = comparisons() | memberships() | booleans()


@given(a=flat, b=flat, c=flat, of=rows)
def test_not_binds_more_than_and_and_and_more_than_or(a: Condition, b: Condition, c: Condition, of: list[Row]) -> None:
    text = f"{a[0]} or not {b[0]} and {c[0]}"
    found = pl.DataFrame(of, schema=COLUMNS).with_columns(_found=parse_condition(text, COLUMNS))["_found"]
    assert found.to_list() == [a[1](row) or (not b[1](row) and c[1](row)) for row in of]


pieces = st.lists(
    st.sampled_from(
        ["salience", "kind", "old", "nobody", "and", "or", "not", "in", "null", "true", "1", "-2.5", "'a'", '"b"', "'",
         "(", ")", "[", "]", ",", "==", "!=", "<", ">=", "=", "!", "&&", "\n", "\ud800", "\x00", "é", "1e400"]
    )
).map(" ".join)  # fmt: skip


@given(st.text() | pieces)
@example("\ud800")
@example("'\ud800'")
@example("9" * 400 + " < 1")
@example("²")
def test_any_text_is_a_condition_or_an_error_that_points_into_it(text: str) -> None:
    column = 1
    dtype: pl.DataType = pl.Boolean()
    try:
        dtype = pl.DataFrame(schema=COLUMNS).select(parse_condition(text, COLUMNS)).to_series().dtype
    except ConditionError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1
    assert dtype == pl.Boolean


# Missing values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("salience < 1", False),
        ("salience >= 1", False),
        ("not salience < 1", True),
        ("kind == 'a'", False),
        ("kind != 'a'", True),
        ("kind == title", False),
        ("kind in ['a']", False),
        ("kind not in ['a']", True),
        ("kind == null", True),
        ("null != kind", False),
        ("old", False),
        ("not old", True),
        ("old == false", False),
    ],
)
def test_a_comparison_with_a_missing_value_is_false_and_its_opposite_holds(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("value", [1.0, 2.0, 3.0])
def test_each_sign_compares_below_at_and_above(sign: str, value: float) -> None:
    assert holds(f"salience {sign} 2", salience=value) is SIGNS[sign](value, 2)
    assert holds(f"2 {sign} salience", salience=value) is SIGNS[sign](2, value)


def test_a_backslash_is_itself_and_the_other_quote_needs_no_escape() -> None:
    assert holds(r"kind == 'a\n'", kind="a\\n")
    assert holds('kind == "it\'s"', kind="it's")


def test_integers_compare_with_decimals() -> None:
    assert holds("evidence > 2.5 and salience == 1 and evidence in [3, 4.5]", evidence=3, salience=1.0)


def test_a_thousand_parts_are_joined_without_nesting() -> None:
    assert holds(" and ".join(["old"] * 500), old=True)
    assert holds(" or ".join(["old"] * 500), old=True)


def test_depth_and_length_have_limits() -> None:
    assert holds("(" * MAX_DEPTH + "old" + ")" * MAX_DEPTH, old=True)
    assert holds("not " * MAX_DEPTH + "old", old=True)
    for opening in ("(", "not "):
        error = refused(opening * (MAX_DEPTH + 1) + "old")
        assert (error.column, "at most 64" in error.problem) == (len(opening) * MAX_DEPTH + 1, True)
    assert holds("old".ljust(MAX_LENGTH), old=True)
    error = refused("old".ljust(MAX_LENGTH + 1))
    assert error.problem == f"found {MAX_LENGTH + 1} characters, expected at most {MAX_LENGTH}"


# Errors


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "found the end, expected a column or a value"),
        ("salience <", 11, "found the end, expected a column or a value"),
        ("salience < and", 12, "found and, expected a column or a value"),
        ("salience", 9, "found the end after salience (a number), expected a comparison"),
        ("'a' and old", 5, "found and after 'a' (a string), expected a comparison"),
        ("null", 5, "found the end after null, expected a comparison"),
        ("salience < 'x'", 12, "found 'x' (a string) beside salience (a number), expected two of one type"),
        ("kind == 3", 9, "found 3 (a number) beside kind (a string), expected two of one type"),
        ("kind == salience", 9, "found salience (a number) beside kind (a string), expected two of one type"),
        ("salience in [1, 'x']", 17, "found 'x' (a string) beside salience (a number), expected two of one type"),
        ("old < true", 5, "found < between booleans, expected == or !="),
        ("kind < null", 6, "found < with null, expected == or !="),
        ("kind in ['a', null]", 15, "found null, which goes with == and != only, expected a literal in the list"),
        ("kind in [title]", 10, "found column title, expected a literal in the list"),
        ("kind in []", 10, "found ], expected a column or a value"),
        ("kind in 'a'", 9, "found 'a', expected a list in brackets"),
        ("kind in ['a' 'b']", 14, "found 'b', expected ',' or ']'"),
        ("kind not 'a'", 10, "found 'a', expected 'in' after 'not'"),
        ("0 < salience < 1", 14, "found < after a comparison, expected 'and' or 'or'"),
        ("old old", 5, "found old, expected 'and', 'or' or the end"),
        ("(old", 5, "found the end, expected 'and', 'or' or ')'"),
        ("old)", 4, "found ), expected 'and', 'or' or the end"),
        ("kind = 'a'", 6, "found =, expected =="),
        ("kind <> 'a'", 6, "found <>, expected !="),
        ("old && used", 5, "found &&, expected and"),
        ("!old", 1, "found !, expected not"),
        ("kind == 'a", 9, "found a string that does not end, expected another '"),
        ("salience < $", 12, "found '$', expected a column, a value or an operator"),
        ("1e999 < salience", 1, "found a number that is too large"),
        ("old and\n  sailence < 1", 11, "found sailence (did you mean salience?), expected one of the columns "
         "kind, title, salience, evidence, old, used"),
        ("old == True", 8, "found True (did you mean true?), expected one of the columns "
         "kind, title, salience, evidence, old, used"),
        ("xyzzy", 1, "found xyzzy, expected one of the columns kind, title, salience, evidence, old, used"),
    ],
)  # fmt: skip
def test_an_error_says_where_what_was_found_and_what_was_expected(text: str, column: int, problem: str) -> None:
    error = refused(text)
    assert (error.column, error.problem) == (column, problem)


def test_the_error_survives_pickling() -> None:
    error = refused("kind = 1")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.column) == (ConditionError, str(error), error.column)


@pytest.mark.parametrize("name", RULE_COLUMNS)
def test_every_rule_column_can_be_named(name: str) -> None:
    expression = parse_condition(f"{name} != null", RULE_COLUMNS)
    assert expression.meta.root_names() == [name]
    assert pl.DataFrame(schema=RULE_COLUMNS).select(expression).schema == {name: pl.Boolean}
