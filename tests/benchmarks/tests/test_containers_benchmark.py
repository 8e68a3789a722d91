"""Our splitter of JSON arrays beside ijson, and our zip files beside stream-unzip: the same content, other failures."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

VALUES = st.recursive(
    st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text('aé"\\[]{},\n', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"]', max_size=3), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module("containers")


@pytest.mark.slow
@given(elements=st.lists(VALUES, max_size=8))
@settings(max_examples=200, deadline=None)
def test_an_array_has_the_same_elements_as_with_ijson(script: ModuleType, elements: list[Any]) -> None:
    data = msgspec.json.encode(elements)
    assert script.split_by_us(data) == script.split_by_ijson(data) == elements


def test_a_broken_element_ends_the_array_for_ijson_alone(script: ModuleType) -> None:
    data = b'[{"id":0},{"id":NaN},{"id":2}]'
    assert script.split_by_us(data) == [{"id": 0}, None, {"id": 2}]
    assert script.split_by_ijson(data) == [{"id": 0}]


def test_members_are_the_same_and_a_bomb_is_refused_by_us_alone(script: ModuleType) -> None:
    plain = script.archive({"a.bin": b"a" * 1000, "b.json": b"b" * 2000})
    assert script.member_by_us(plain, "b.json") == script.member_by_stream(plain, "b.json") == 2000
    bomb = script.archive({"a.json": bytes(20 << 20)})
    assert script.is_refused(script.member_by_us, bomb, "a.json") == "refused before a byte is unpacked"
    assert script.is_refused(script.member_by_stream, bomb, "a.json") == "read 20 MiB"
