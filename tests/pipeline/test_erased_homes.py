"""The search for what is left finds what a plain search finds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.erased_homes import _common_prefix, _held, left

MARKS = st.lists(st.text("ab", min_size=1, max_size=4).map(str.encode), min_size=1, max_size=5)


@given(MARKS, st.text("ab", max_size=12).map(str.encode))
def test_marks_are_found_as_by_a_search_for_each(marks: list[bytes], data: bytes) -> None:
    """Also marks that begin with another, or with a part of themselves."""
    assert _held(data, marks, _common_prefix(marks)) == [mark for mark in marks if mark in data]


def test_marks_in_names_and_bytes_are_found_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "zq7x001.txt").write_bytes(b"ZQ7X003")
    (tmp_path / "other").write_bytes(b"zq7x")
    assert left(tmp_path, ["zq7x001", "zq7x002", "zq7x003"]) == {"zq7x001.txt": ["zq7x001", "zq7x003"]}
