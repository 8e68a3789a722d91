"""The files that a server writes into the inbox: their names, their signed header, the key."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memstate_core.ingest.api_files import file_name, is_header, is_signed, make_key, read_key, signed, written_at

KEY, ROWS = b"k" * 32, b'{"text": "x"}\n{"text": "y"}\n'


def test_names_have_the_time_and_sort_by_it() -> None:
    names = [file_name(at, "0a1b2c3d") for at in (1, 20, 300)]
    assert [written_at(name) for name in names] == [1, 20, 300]
    assert sorted(names) == names
    assert written_at(names[0].replace(".jsonl", ".2.jsonl")) == 1, "moved beside a file of the same name"


@pytest.mark.parametrize("name", ["api-1-x.jsonl", "api-.jsonl", f"my-{file_name(1, 'x')}", f"{file_name(1, 'x')}.zip"])
def test_other_names_are_no_names_of_the_api(name: str) -> None:
    assert written_at(name) is None


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_signed_file_is_known_however_its_bytes_arrive(size: int) -> None:
    content = signed(ROWS, KEY)
    assert is_signed((content[at : at + size] for at in range(0, len(content), size)), KEY)
    assert is_header(content.partition(b"\n")[0])
    assert content.partition(b"\n")[2] == ROWS


def test_a_changed_file_another_key_and_no_header_are_not_signed() -> None:
    content = signed(ROWS, KEY)
    for other in (content + b"{}\n", content[:-2], content.replace(b'"x"', b'"z"'), ROWS, b"", b"x" * 10_000):
        assert not is_signed([other], KEY)
    assert not is_signed([content], b"another")
    assert not is_signed([content], None)
    assert not is_header(b'{"memstate_api": 1, "signature": "s", "text": "x"}')


def test_the_key_is_made_once_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "inbox.key"
    assert read_key(path) is None
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: make_key(path), range(32)))
    assert keys == {read_key(path)}
    assert len(keys.pop()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["inbox.key"]
