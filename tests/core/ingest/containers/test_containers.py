"""Layouts of dumps on disk, and the handling of damaged ones."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from memstate_core.ingest.containers.json_array import array_rows
from memstate_core.ingest.raw_rows import BrokenContainer, line_rows
from memstate_core.model.progress import Progress, progress_to

ROWS = [
    {"observation_id": "a", "text": "x", "title": 'quote " and \\ and ] and ,', "unknown": {"deep": [[1], [2]]}},
    {"title": "t", "fields": [{"name": "n", "value": "v", "ref_topic_id": "r", "confidence": 0.5}]},
    {"title": "t", "edges": [{"kind": "part_of", "to_topic_key": "k", "valid_from": "2026-01-01T00:00:00Z"}]},
    {"text": "é 😀", "scope": {"type": "user", "id": "u"}, "turn": 3, "observed_at": "2026-01-01T00:00:00Z"},
]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
ARRAY = json.dumps(ROWS, indent=2).encode()


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", LINES), ("a.ndjson", LINES), ("a.txt", LINES), ("a", LINES), ("a.json", LINES),
        ("a.jsonl", LINES.rstrip()), ("a.jsonl", LINES.replace(b"\n", b"\r\n")), ("a.jsonl", b"\xef\xbb\xbf" + LINES),
        ("a.jsonl", b"\n  \n" + LINES.replace(b"\n", b"\n\r\n") + b"\n\n"),
        ("a.jsonl.gz", gzip.compress(LINES)), ("a.JSONL.GZ", gzip.compress(LINES)), ("a.jsonl", gzip.compress(LINES)),
        ("a.jsonl.gz", gzip.compress(LINES[:100]) + gzip.compress(LINES[100:])),
        ("a.jsonl.zst", zst(LINES)), ("a.bin", zst(LINES)), ("a.jsonl.zst", zst(LINES[:100]) + zst(LINES[100:])),
        ("a.json", ARRAY), ("a.json", json.dumps(ROWS).encode()), ("a.json", b"\xef\xbb\xbf \n" + ARRAY + b" \n"),
        ("a.export", ARRAY), ("a.json.gz", gzip.compress(ARRAY)), ("a.json.zst", zst(ARRAY)),
    ],
)  # fmt: skip
def test_every_format_gives_the_same_evidence(desk, name, data):
    (desk.folder / name).write_bytes(data)
    report = desk.read(desk.folder / name)
    assert report.to_json() | {"files": 1} == {
        "read": 4, "accepted": 4, "duplicate": 0, "quarantined": 0, "files": 1, "reasons": {}, "errors": [],
    }  # fmt: skip
    assert desk.read(desk.file("same.jsonl", *ROWS)).duplicate == 4


def test_parquet_gives_the_same_evidence(desk):
    pl.DataFrame(ROWS, infer_schema_length=None).write_parquet(desk.folder / "a.parquet")
    assert desk.read(desk.folder / "a.parquet").accepted == 4
    assert desk.read(desk.file("same.jsonl", *ROWS)).duplicate == 4


def test_parquet_may_hold_times_numbers_and_bytes_of_its_own_types(desk):
    frame = pl.DataFrame(
        {
            "text": [b"a", b"b", b"caf\xe9"],
            "observed_at": [datetime(2026, 1, 1, 12, tzinfo=UTC), None, None],
            "title": ["t"] * 3,
            "fields": [
                [{"name": "n", "value": Decimal("1.50"), "field_type": "float", "valid_from": date(2026, 1, 2)}],
                [{"name": "n", "value": Decimal("2.00"), "field_type": "int", "valid_from": None}],
                [],
            ],
        }
    ).with_columns(pl.col("observed_at").cast(pl.Datetime("ns", "Europe/Paris")))
    frame.write_parquet(desk.folder / "a.parquet")
    report = desk.read(desk.folder / "a.parquet")
    assert (report.accepted, dict(report.reasons)) == (2, {"not_utf8": 1})
    one, two = sorted(desk.evidence(), key=lambda row: row["text"])
    assert one["observed_at"] == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert one["fields"][0]["valid_from"] == datetime(2026, 1, 2, tzinfo=UTC)
    assert [row["fields"][0]["value_json"] for row in (one, two)] == ["1.5", "2"]


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.json.gz"])
def test_one_object_over_many_lines_is_one_row(desk, name):
    """Each of its lines was refused as broken JSON, 20,000 of a large export of an unknown program."""
    known = json.dumps(ROWS[0], indent=1).encode()
    (desk.folder / name).write_bytes(gzip.compress(known) if name.endswith(".gz") else known)
    assert desk.read(desk.folder / name).accepted == 1
    (desk.folder / "b.json").write_text(json.dumps({"messages": [{"from": "Ann", "date": 1}] * 9}, indent=1))
    assert desk.read(desk.folder / "b.json").reasons == {"missing_content": 1}


def test_a_bad_parquet_row_is_kept_as_json(desk):
    frame = pl.DataFrame({"text": ["a", "b"], "score": [0.5, float("nan")]})
    frame.write_parquet(desk.folder / "a.parquet")
    assert desk.read(desk.folder / "a.parquet").accepted == 1
    [row] = desk.quarantine()
    assert (row["reason"], row["line"], row["raw"]) == ("not_a_number", 2, b'{"text":"b","score":NaN}')


def test_a_field_of_a_parquet_file_may_be_cleared(desk):
    fields = [[{"name": "n", "value": "v", "field_type": None}], [{"name": "n", "value": None, "field_type": "string"}]]
    pl.DataFrame({"title": ["a", "b"], "fields": fields}).write_parquet(desk.folder / "a.parquet")
    assert desk.read(desk.folder / "a.parquet").accepted == 2
    assert sorted(row["fields"][0]["value_json"] for row in desk.evidence()) == ['"v"', "null"]


def test_lines_are_numbered_as_an_editor_numbers_them(desk):
    desk.read(desk.file("a.jsonl", {"text": "a"}, b"", b"\r", b"{"))
    assert desk.quarantine()[0]["line"] == 4


def test_a_bad_element_of_an_array_is_one_bad_row(desk):
    path = desk.folder / "a.json"
    path.write_bytes(b'[{"text":"a"}, {"text": NaN}, {"text": tru}, 5, {"text":"b]"} ,]')
    report = desk.read(path)
    assert (report.read, report.accepted, report.errors) == (5, 2, ())
    assert [(row["line"], row["reason"]) for row in desk.quarantine()] == [
        (2, "not_a_number"),
        (3, "broken_json"),
        (4, "wrong_type"),
    ]


@pytest.mark.parametrize(
    ("data", "rows", "words"),
    [
        (b'[{"text":"a"}, {"text":"b"', 1, "byte 26: the data ends inside the array, in element 2"),
        (b'[{"text":"a"}, {"text":"b"', 1, "which begins at byte 14"),
        (b'[{"text":"a"}] x', 1, "byte 15: found more data"),
        (b'[{"text":"a"}}', 1, "byte 13: found }"),
        (b'[{"text":"a"}, {"text":"b}]', 1, "element 2"),
        (b"[", 0, "element 1"),
    ],
)  # fmt: skip
def test_a_broken_array_names_the_byte(desk, data, rows, words):
    (desk.folder / "a.json").write_bytes(data)
    report = desk.read(desk.folder / "a.json")
    [error] = report.errors
    assert words in error.message
    assert report.accepted == rows


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_arrays_and_lines_do_not_depend_on_where_blocks_end(size):
    texts = ['\\"],{[', "\\\\", "é", "", 'a"b']
    rows = [json.dumps({"t": text, "n": [1, {"x": []}]}).encode() for text in texts]
    array, lines = b" [\n" + b" ,\n".join(rows) + b"]\n", b"\n\r\n".join(rows)

    def cut(data: bytes) -> list[bytes]:
        return [data[at : at + size] for at in range(0, len(data), size)]

    assert [row.raw for row in array_rows(cut(array), 1000)] == rows
    assert [row.raw for row in line_rows(cut(lines), 1000)] == rows
    with pytest.raises(BrokenContainer):
        list(array_rows(cut(array.rstrip()[:-1]), 1000))


@pytest.mark.slow
@pytest.mark.parametrize("packed", [gzip.compress, zst], ids=["gz", "zst"])
def test_rows_before_the_break_of_a_packed_file_are_kept(desk, packed):
    lines = [json.dumps({"text": os.urandom(300).hex()}).encode() + b"\n" for _ in range(1000)]
    data = packed(b"".join(lines))
    path = desk.folder / f"a.jsonl.{'gz' if packed is gzip.compress else 'zst'}"
    path.write_bytes(data[: len(data) * 3 // 4])
    report = desk.read(path, desk.file("good.jsonl", {"text": "good"}))
    broken, good = report.files
    assert 500 < broken.accepted == broken.read < 1000
    assert f"after line {broken.read}" in (broken.error or "")
    assert good.accepted == 1
    path.write_bytes(data)
    assert desk.read(path).files[0].duplicate == broken.read


@pytest.mark.parametrize("packed", [gzip.compress, zst], ids=["gz", "zst"])
def test_damaged_bytes_inside_a_packed_file_are_an_error(desk, packed):
    data = bytearray(packed(os.urandom(200_000).hex().encode()))
    data[len(data) // 2] ^= 0xFF
    path = desk.folder / f"a.jsonl.{'gz' if packed is gzip.compress else 'zst'}"
    path.write_bytes(data)
    assert len(desk.read(path).errors) == 1


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl.gz", LINES, "its name ends in .gz"),
        ("a.jsonl.gz", b"", "is empty"),
        ("a.jsonl.zst", gzip.compress(LINES), "its name ends in .zst"),
        ("a.parquet", LINES, "its name ends in .parquet"),
        ("a.parquet", b"PAR1 and no more", "cannot be read"),
        ("a.pdf", b"%PDF-1.4\0\0", "binary data of no known format"),
    ],
)
def test_a_file_that_is_not_what_its_name_promises_is_an_error(desk, name, data, words):
    (desk.folder / name).write_bytes(data)
    report = desk.read(desk.folder / name, desk.file("good.jsonl", {"text": "a"}))
    [error] = report.errors
    assert words in error.message
    assert str(desk.folder / name) in error.message
    assert [file.read for file in report.files] == [0, 1]


def test_a_parquet_file_that_is_damaged_inside_is_an_error(desk):
    path = desk.folder / "a.parquet"
    pl.DataFrame({"text": [os.urandom(500).hex() for _ in range(2000)]}).write_parquet(path)
    data = bytearray(path.read_bytes())
    data[5000:400_000] = os.urandom(395_000)
    path.write_bytes(data)
    assert len(desk.read(path).errors) == 1


def test_a_path_that_leads_nowhere_is_an_error(desk):
    empty = desk.folder / "empty"
    empty.mkdir()
    report = desk.read(desk.folder / "none.jsonl", empty)
    assert ["no such file" in report.errors[0].message, "holds no dump" in report.errors[1].message] == [True, True]


def test_a_folder_of_folders_alone_is_an_error_that_names_them(desk):
    for name in ("dumps/b", "dumps/a/deeper", "dumps/empty", "dumps/.hidden"):
        (desk.folder / name).mkdir(parents=True)
    for name in ("b", "a/deeper", ".hidden"):
        (desk.folder / "dumps" / name / "x.jsonl").write_text("{}")
    (error,) = desk.read(desk.folder / "dumps").errors
    assert "the folder holds no dump, expected " in error.message
    assert "; the folders in it are not read (a, b). Check" in error.message


def test_an_unreadable_file_is_an_error(desk):
    loop = desk.folder / "loop.jsonl"
    loop.symlink_to(loop)
    assert len(desk.read(loop).errors) == 1


def test_a_folder_means_its_dumps_in_order(desk):
    for name in ("b.jsonl", "a.jsonl", ".hidden.jsonl", "c.jsonl.tmp", "d.part"):
        desk.file(name, {"text": name})
    (desk.folder / "deeper").mkdir()
    assert [Path(file.path).name for file in desk.read(desk.folder).files] == ["a.jsonl", "b.jsonl"]


def test_an_empty_file_has_no_rows(desk):
    report = desk.read(desk.file("a.jsonl"))
    assert (report.read, report.errors) == (0, ())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
def test_progress_ends_at_the_size_of_the_file(desk, name):
    rows = [{"text": os.urandom(200).hex()} for _ in range(1000)]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    data = {"a.jsonl": lines, "a.jsonl.gz": gzip.compress(lines), "a.json": json.dumps(rows).encode()}[name]
    path = desk.folder / name
    path.write_bytes(data)
    seen: list[Progress] = []
    with progress_to(seen.append):
        desk.read(path)
    assert {(step.phase, step.total, step.unit) for step in seen} == {(f"import {path}", len(data), "bytes")}
    positions = [step.done for step in seen]
    assert positions == sorted(positions)
    assert positions[-1] == len(data)


def long_line(path: Path, size: int, before: bytes, after: bytes) -> str:
    digest = sha256(b'"')
    with path.open("wb") as file:
        file.write(before + b'"')
        for _ in range(size >> 20):
            file.write(b"x" * (1 << 20))
            digest.update(b"x" * (1 << 20))
        file.write(b'"' + after)
    digest.update(b'"')
    return digest.hexdigest()


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_line_of_50_megabytes_is_refused_without_being_held(desk, name):
    good: dict[str, Any] = {"text": "good"}
    before, after = json.dumps(good).encode(), json.dumps(good | {"turn": 2}).encode()
    if name == "a.json":
        before, after = b"[" + before + b",", b"," + after + b"]"
    else:
        before, after = before + b"\n", b"\n" + after
    digest = long_line(desk.folder / name, 50 << 20, before, after)
    desk.rows(good)
    tracemalloc.start()
    report = desk.read(desk.folder / name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (report.read, report.accepted, report.duplicate, report.quarantined) == (3, 1, 1, 1)
    [row] = desk.quarantine()
    assert (row["reason"], row["line"]) == ("line_too_long", 2)
    assert (len(row["raw"]), row["raw_bytes"], row["raw_sha256"]) == (1 << 20, (50 << 20) + 2, digest)
    assert "max_line_mib" in row["detail"]
    assert peak < 16 << 20
