"""What the rows of the ledger's tables show by themselves, in words that count one row as one."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from memstate_core.night.ledger_audit import table_problems
from tests.core.night.checks.damage import Home

pytestmark = pytest.mark.slow

Change = Callable[[pl.DataFrame], pl.DataFrame]


def other_content(rows: pl.DataFrame) -> pl.DataFrame:
    """The first row with a digest that gives another id."""
    first = pl.int_range(pl.len()) == 0
    return rows.with_columns(content_sha256=pl.when(first).then(pl.lit("0" * 64)).otherwise("content_sha256"))


def without_kinds(count: int) -> Change:
    first = pl.int_range(pl.len()) < count
    return lambda rows: rows.sort("seq").with_columns(kind=pl.when(~first).then("kind"))


DAMAGES: dict[str, tuple[str, Change, str]] = {
    "a row twice": (
        "evidence", lambda rows: pl.concat([rows, rows.head(1)]), "1 duplicate among the rows"
    ),
    "two rows twice": (
        "evidence", lambda rows: pl.concat([rows, rows.head(2)]), "2 duplicates among the rows"
    ),
    "another id": ("evidence", other_content, "1 row with another id than the content gives, first "),
    "a transition lost": (
        "transitions", lambda rows: rows.filter(pl.col("seq") != 2), "1 place where the numbers are not consecutive"
    ),
    "the first lost": (
        "transitions", lambda rows: rows.filter(pl.col("seq") > 0), "the numbers begin with 1, not with 0"
    ),
    "a kind lost": ("transitions", without_kinds(1), "1 row without what every transition has, first 0"),
    "two kinds lost": ("transitions", without_kinds(2), "2 rows without what every transition has, first 0"),
}  # fmt: skip


@pytest.mark.parametrize(("table", "change", "said"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_wrong_with_rows_is_said_once(home: Home, table: str, change: Change, said: str) -> None:
    assert table_problems(home.store, None) == []
    home.ledger(table, change)
    (problem,) = table_problems(home.store, None)
    assert problem.startswith(f"{table}: {said}")
