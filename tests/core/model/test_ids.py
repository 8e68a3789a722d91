"""Ids: one row at a time and in bulk they are the same, and no two lists of parts share one."""

from __future__ import annotations

import hashlib
from uuid import UUID

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.ids import sha256_expr, sha256_text, uuid_expr, uuid_text

parts = st.lists(st.tuples(st.text(max_size=6), st.text(st.sampled_from("1\x1fa2"), max_size=6)), min_size=1)


@given(parts)
def test_ids_in_bulk_are_those_of_single_rows(rows: list[tuple[str, str]]) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    found = frame.select(id=uuid_expr("key", pl.col("a"), pl.col("b")), hash=sha256_expr(pl.col("a")))
    assert found["id"].to_list() == [uuid_text("key", *row) for row in rows]
    assert found["hash"].to_list() == [hashlib.sha256(first.encode()).hexdigest() for first, _ in rows]
    assert found["hash"].to_list() == [sha256_text(first) for first, _ in rows]


@given(parts)
def test_different_parts_have_different_ids(rows: list[tuple[str, str]]) -> None:
    distinct = set(rows)
    assert len({uuid_text("key", *row) for row in distinct}) == len(distinct)
    assert not {uuid_text("key", *row) for row in distinct} & {uuid_text("title", *row) for row in distinct}


def test_an_id_is_a_uuid_of_version_8_and_stays_the_same() -> None:
    found = UUID(uuid_text("key", "user:aya", "acme"))
    assert (found.version, found.variant) == (8, "specified in RFC 4122")
    assert str(found) == "3418eddc-39e7-8c79-8b0c-dc6c49f59e2f"
