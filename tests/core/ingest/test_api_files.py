"""The files that a server writes into the inbox: their names, their signed header, the key."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from memstate_core.ingest.api_files import (
    accepted_at,
    damage,
    file_name,
    is_header,
    is_signed,
    make_key,
    read_key,
    signed,
    written_at,
)
from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.text import iso
from memstate_core.run.store import open_store
from tests.core.clocks import SETTLED
from tests.core.strategies import day

KEY, ROWS = b"k" * 32, b'{"text": "x"}\n{"text": "y"}\n'


def test_names_have_the_time_and_sort_by_it() -> None:
    names = [file_name(at, "0a1b2c3d") for at in (1, 20, 300)]
    assert [written_at(name) for name in names] == [1, 20, 300]
    assert sorted(names) == names
    assert written_at(names[0].replace(".jsonl", ".2.jsonl")) == 1, "moved beside a file of the same name"


@pytest.mark.parametrize("name", ["api-1-x.jsonl", "api-.jsonl", f"my-{file_name(1, 'x')}", f"{file_name(1, 'x')}.zip"])
def test_other_names_are_no_names_of_the_api(name: str) -> None:
    assert written_at(name) is None


def test_rows_were_accepted_in_their_order_and_never_after_the_import() -> None:
    at = int(day(3).timestamp()) * 10**9
    first, second = accepted_at(file_name(at, "x"), [2, 3], day(5))
    assert day(3) < first < second < day(3) + timedelta(seconds=1)
    assert accepted_at(file_name(10**20 - 1, "x"), [2], day(5)) == accepted_at("a.jsonl", [2], day(5)) == [day(5)]


def test_what_a_server_accepted_without_a_time_was_observed_then(tmp_path: Path) -> None:
    """All of a day was observed when the night began, so that its values contradicted one another."""
    store = open_store(tmp_path, {})
    sent = [(day(1), "Aya", {}), (day(2), "Ben", {}), (day(3), "Cem", {"observed_at": iso(day(0.5))})]
    store.home.inbox.mkdir()
    for at, owner, more in sent:
        row = {"topic_key": "acme", "fields": [{"name": "owner", "value": owner}], **more}
        content = signed(json.dumps(row).encode() + b"\n", KEY)
        (store.home.inbox / file_name(int(at.timestamp()) * 10**9, "x")).write_bytes(content)
    (store.home.inbox / "dump.jsonl").write_text('{"text": "of no server"}\n')
    assert import_inbox(store.home, store.ledger, store.settings, now=day(5), run_id="r", clock=SETTLED).accepted == 4
    found = store.ledger.scan("evidence").select("observed_at", "imported_at").collect().sort("observed_at")
    seconds = found["observed_at"].dt.truncate("1s").to_list()
    assert seconds == [day(0.5), day(1), day(2), day(5)]
    assert set(found["imported_at"]) == {day(5)}


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


@pytest.mark.parametrize("key", [KEY, b"another", None])
@pytest.mark.parametrize(
    "content",
    [signed(ROWS, KEY).replace(b'"x"', b'"z"'), signed(ROWS, KEY)[:-14], signed(ROWS, KEY)[:-1], b""],
    ids=["changed", "a row less", "cut", "emptied"],
)
def test_a_file_that_changed_since_it_was_acknowledged_fails_and_is_named(
    tmp_path: Path, content: bytes, key: bytes | None
) -> None:
    """Its rows were imported with their changed values, or without the ones that were cut off."""
    store, name = open_store(tmp_path, {}), file_name(1, "x")
    store.home.inbox.mkdir()
    if key is not None:
        store.home.inbox_key.write_bytes(key)
    (store.home.inbox / name).write_bytes(content)
    report = import_inbox(store.home, store.ledger, store.settings, now=day(5), run_id="r")
    assert report.accepted == 0
    assert [name in error.message for error in report.errors] == [True]
    assert (store.home.failed / name).read_bytes() == content
    again = import_paths(
        store.ledger, store.settings, [store.home.failed / name], now=day(5), run_id="r", format="observations"
    )
    assert again.accepted == content.count(b'{"text"')


def test_a_file_of_a_version_without_digests_is_read(tmp_path: Path) -> None:
    store, name = open_store(tmp_path, {}), file_name(1, "x")
    store.home.inbox.mkdir()
    (store.home.inbox / name).write_bytes(b'{"memstate_api":1,"signature":"s"}\n' + ROWS)
    assert import_inbox(store.home, store.ledger, store.settings, now=day(5), run_id="r").accepted == 2


def test_files_of_others_have_no_digest() -> None:
    assert damage("export.jsonl", [ROWS]) is None
    assert damage("export.jsonl", [b""]) is None
    assert damage("renamed.jsonl", [signed(ROWS, KEY)]) is None
    assert damage("renamed.jsonl", [signed(ROWS, KEY)[:-1]]) is not None


def test_the_key_is_made_once_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "inbox.key"
    assert read_key(path) is None
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: make_key(path), range(32)))
    assert keys == {read_key(path)}
    assert len(keys.pop()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["inbox.key"]
