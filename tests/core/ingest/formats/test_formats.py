"""Properties of all readers: detection, repetition, archives, arbitrary bytes, and memory."""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.ingest import inbox
from memstate_core.ingest.containers import compression, zip_archive
from memstate_core.ingest.containers.source import Source, plain_source, zip_source
from memstate_core.ingest.formats import FORMATS, chosen, reader, recognised
from memstate_core.ingest.importer import import_paths
from memstate_core.model.progress import Progress, progress_to
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from tests.core.clocks import SETTLED
from tests.core.ingest.formats.samples import (
    SAMPLES,
    as_json,
    as_lines,
    code_event,
    slack,
    slack_message,
    talk,
    zipped_by_name,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CASES = [(name, data) for name, found in SAMPLES.items() for data in found]
IDS = [f"{name}-{at}" for name, found in SAMPLES.items() for at in range(len(found))]


def source_of(data: bytes, name: str = "export") -> Source:
    file = io.BytesIO(data)
    return zip_source(Path(name), file) if data.startswith(b"PK") else plain_source(Path(name), file, None)


def test_every_reader_has_a_sample_and_says_what_it_expects():
    assert set(FORMATS) == set(SAMPLES)
    assert all(reader(name).expected for name in FORMATS)
    with pytest.raises(ValueError, match="'word' is not a format: expected one of chatgpt"):
        reader("word")


@pytest.mark.parametrize(("name", "data"), CASES, ids=IDS)
def test_a_sample_is_recognised_as_itself_and_as_nothing_else(name, data):
    assert recognised(source_of(data)) == [name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), CASES, ids=IDS)
def test_a_sample_is_read_once_whatever_it_is_called(desk, name, data):
    for called in ("export", "other.dat"):
        path = desk.folder / called
        path.write_bytes(data)
        report = desk.read(path)
        assert report.files[0].format == name
        assert (report.read, report.quarantined, report.errors) == (2, 0, ())
    assert report.duplicate == 2
    assert desk.read(path, format=name).duplicate == 2
    assert desk.ledger.count("evidence") == 2


PACKABLE = [case for case in CASES if not case[1].startswith(b"PK") and case[0] != "memory-sqlite"]
"""What may be packed; SQLite reads no stream."""


@pytest.mark.parametrize(("name", "data"), PACKABLE)
def test_a_packed_sample_is_read_as_a_plain_one(desk, name, data):
    path = desk.folder / "export.gz"
    path.write_bytes(gzip.compress(data))
    assert (desk.read(path).accepted, desk.read(path).files[0].format) == (2, name)


@pytest.mark.parametrize("wanted", [name for name in FORMATS if name != "observations"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_wrong_format_is_an_error_that_says_what_was_expected(name, wanted):
    source = source_of(SAMPLES[name][0])
    if name == wanted:
        assert chosen(source, wanted) == wanted
        return
    with pytest.raises(Exception, match=f"format {wanted} was asked for, expected ") as error:
        chosen(source, wanted)
    assert reader(wanted).expected in str(error.value)
    assert f"it looks like {name}" in str(error.value) or name == "observations"


def test_parquet_is_no_chat(desk):
    import polars as pl

    pl.DataFrame({"text": ["a"]}).write_parquet(desk.folder / "a.parquet")
    [error] = desk.read(desk.folder / "a.parquet", format="slack").errors
    assert "a Slack export" in error.message
    assert desk.read(desk.folder / "a.parquet", format="observations").accepted == 1


def test_the_inbox_knows_formats(tmp_path):
    home = Home(tmp_path)
    home.inbox.mkdir()
    for name, found in SAMPLES.items():
        (home.inbox / name).write_bytes(found[0])
    (home.inbox / "word.docx").write_bytes(zipped_by_name({"word/document.xml": "<xml/>"}))
    report = inbox.import_inbox(home, Ledger(home.ledger), Settings(), now=NOW, run_id="r", clock=SETTLED)
    assert {Path(file.path).name: file.format for file in report.files if file.error is None} == {n: n for n in SAMPLES}
    assert "holds no export that is known" in report.errors[0].message
    assert [path.name for path in home.failed.iterdir()] == ["word.docx"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda data: data[:60] + bytes([data[60] ^ 255]) + data[61:],
            "its member conversations.json cannot be read: ",
        ),
        (
            lambda data: data[:6] + b"\1" + data[7:].replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"),
            "is encrypted",
        ),
    ],
    ids=["damaged", "encrypted"],
)
def test_an_archive_whose_member_cannot_be_read_is_not_called_unknown(desk, damage, said):
    whole = zipped_by_name({"conversations.json": SAMPLES["chatgpt"][0]})
    assert whole != damage(whole)
    (desk.folder / "export.zip").write_bytes(damage(whole))
    [error] = desk.read(desk.folder / "export.zip").errors
    assert said in error.message
    assert "expected whole members, without a password" in error.message


def test_a_zip_bomb_is_an_error_that_names_the_member(desk):
    path = desk.folder / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb, bomb.open("conversations.json", "w") as member:
        member.write(b'[{"mapping": {}, "x": "')
        for _ in range(64):
            member.write(b"0" * (1 << 20))
    tracemalloc.start()
    [error] = desk.read(path).errors
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert "'conversations.json' unpacks from" in error.message
    assert "zip bomb" in error.message


def test_many_small_members_of_zeros_are_a_zip_bomb_too(desk):
    path = desk.folder / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        for at in range(4):
            bomb.writestr(f"{at}/conversations.json", b'[{"mapping": {}, "x": "' + b"0" * (15 << 20))
    [error] = desk.read(path).errors
    assert "its 4 members unpack from" in error.message
    assert "zip bomb" in error.message


@pytest.mark.slow
@pytest.mark.parametrize("packed", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
def test_a_packed_file_of_zeros_is_read_only_so_far(desk, monkeypatch, packed):
    monkeypatch.setattr(compression, "RATIO_FROM_BYTES", 4 << 20)
    path = desk.folder / "bomb.jsonl"
    path.write_bytes(packed(b'{"text": "good"}\n' + b"0" * (64 << 20)))
    report = desk.read(path)
    assert (report.accepted, "it looks like a bomb" in report.errors[0].message) == (1, True)


def test_notes_of_what_was_left_out_are_bounded(desk):
    events = [{"type": f"{at}" + "x" * 1000, "sessionId": "s"} for at in range(200)]
    [file] = desk.read(desk.file("a.jsonl", *events), format="claude-code").files
    assert len(file.notes[0]) < 5000
    assert "150 of other kinds" in file.notes[0]


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("MAX_UNPACKED_BYTES", 100, "conversations.json"), ("MAX_DIRECTORY_BYTES", 100, "list of members")],
)
def test_archives_that_are_too_large_are_errors(desk, monkeypatch, limit, value, words):
    monkeypatch.setattr(zip_archive, limit, value)
    path = desk.folder / "a.zip"
    path.write_bytes(zipped_by_name({"conversations.json": as_json([talk("a", 9)]), "b.txt": "", "c.txt": ""}))
    [error] = desk.read(path).errors
    assert words in error.message


def test_names_that_lead_out_of_an_archive_are_refused(desk):
    names = [
        "../up/conversations.json",
        "/root/conversations.json",
        "C:\\conversations.json",
        "a/../../conversations.json",
    ]
    path = desk.folder / "a.zip"
    path.write_bytes(
        zipped_by_name(
            {name: as_json([talk("x", 2)]) for name in names} | {"conversations.json": as_json([talk("a", 2)])}
        )
    )
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (2, {"unsafe_path": 4})
    assert {row["raw"].decode() for row in desk.quarantine()} == {name.replace("\\", "/") for name in names}
    assert not list(desk.folder.parent.rglob("conversations.json"))
    assert desk.read(path).quarantined == 4


def test_a_broken_member_does_not_disturb_the_others(desk):
    days = {f"general/2024-01-0{day}.json": [slack_message(f"170410000{day}.000100", "x" * 999)] for day in (1, 2, 3)}
    data = bytearray(slack(days))
    at = data.find(b"general/2024-01-02.json") + len(b"general/2024-01-02.json")
    data[at : at + 8] = b"\xff" * 8
    path = desk.folder / "a.zip"
    path.write_bytes(data)
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons), report.errors) == (2, {"broken_member": 1}, ())
    [row] = desk.quarantine()
    assert row["file"] == "a.zip/general/2024-01-02.json"
    assert "cannot be read on" in row["detail"]


def test_members_that_ask_for_a_password_or_another_method_are_refused(desk):
    path = desk.folder / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("channels.json", b"[]", zipfile.ZIP_LZMA)
        packed.writestr("general/2024-01-01.json", as_json([slack_message("1704100001.000100", "x")]))
    data = bytearray(path.read_bytes())
    for mark, shift in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark, data.find(mark) + 1)
        data[at + shift] |= 1
    path.write_bytes(data)
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (0, {"broken_member": 2})
    assert "method 14" in desk.quarantine()[0]["detail"]


def test_a_truncated_zip_is_an_error(desk):
    path = desk.folder / "a.zip"
    path.write_bytes(SAMPLES["slack"][0][:-30])
    assert "the zip file is damaged" in desk.read(path).errors[0].message


def test_bytes_that_are_no_text_are_refused_with_their_place(desk):
    bad = as_json(talk("b", 2)).replace(b"says 1", b"caf\xe9")
    path = desk.folder / "a.zip"
    path.write_bytes(zipped_by_name({"conversations.json": b"[" + as_json(talk("a", 2)) + b"," + bad + b"]"}))
    assert desk.read(path).accepted == 2
    [row] = desk.quarantine()
    assert (row["file"], row["line"], row["reason"], row["raw"]) == ("a.zip/conversations.json", 2, "not_utf8", bad)


def test_absurd_nesting_and_long_conversations_are_refused_and_the_rest_is_read(desk):
    deep = b'{"mapping": {"x": ' + b"[" * 5000 + b"]" * 5000 + b"}}"
    long = as_json(talk("l", 2) | {"pad": "x" * (1 << 20)})
    path = desk.folder / "a.json"
    path.write_bytes(b"[" + b",".join([as_json(talk("a", 2)), deep, long, as_json(talk("b", 2))]) + b"]")
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (4, {"line_too_long": 1, "too_deep": 1})


def test_half_a_character_does_not_cost_the_conversation(desk):
    path = desk.folder / "a.json"
    path.write_bytes(as_json([talk("a", 2)]).replace(b"says 1", rb"\ud83d cut, \ud83d\ude00 whole, \\ud83d said"))
    assert desk.read(path).accepted == 2
    assert any(row["text"] == "a \ufffd cut, 😀 whole, \\ud83d said" for row in desk.evidence())


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_a_newer_export_in_any_order_adds_only_what_is_new(lengths, data):
    older = [data.draw(st.integers(0, length)) for length in lengths]
    shuffled = data.draw(st.permutations([talk(f"t{at}", length) for at, length in enumerate(lengths)]))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger")

        def read(conversations: list[Any]) -> tuple[int, int, int]:
            path = Path(folder) / "conversations.json"
            path.write_bytes(as_json(conversations))
            report = import_paths(ledger, Settings(), [path], now=NOW, run_id="r")
            return report.accepted, report.duplicate, report.quarantined

        assert read([talk(f"t{at}", length) for at, length in enumerate(older)]) == (sum(older), 0, 0)
        assert read(shuffled) == (sum(lengths) - sum(older), sum(older), 0)
        evidence = ledger.scan("evidence").drop("imported_at", "run_id").sort("evidence_id").collect()
        fresh = Ledger(Path(folder) / "fresh")
        import_paths(fresh, Settings(), [Path(folder) / "conversations.json"], now=NOW, run_id="r")
        assert evidence.equals(fresh.scan("evidence").drop("imported_at", "run_id").sort("evidence_id").collect())


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from(CASES), st.integers(0, 10_000), st.binary(max_size=12), st.integers(0, 12))
def test_any_damage_ends_in_quarantine_or_an_error(case, at, junk, cut):
    name, data = case
    at %= len(data) + 1
    data = data[:at] + junk + data[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export"
        path.write_bytes(data)
        for wanted in (None, name):
            ledger = Ledger(Path(folder) / f"ledger-{wanted}")
            first = import_paths(ledger, Settings(), [path], now=NOW, run_id="r", format=wanted)
            assert first.read == first.accepted + first.duplicate + first.quarantined
            again = import_paths(ledger, Settings(), [path], now=NOW, run_id="r", format=wanted)
            assert (again.read, again.accepted, again.quarantined) == (first.read, 0, first.quarantined)


KEYS = sorted(
    {key for found in SAMPLES.values() for key in json.dumps([d.decode("latin-1") for d in found]).split('\\"')}
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(KEYS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.sampled_from(["mapping", "chat_messages", "type", "payload", "conversations", "messages", "choices"]),
    st.lists(JSON, max_size=3),
)
def test_any_json_in_the_place_of_an_export(key, values):
    known = {"type": {"sessionId": "s", "uuid": "u"}, "payload": {"type": "response_item"}}.get(key, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export"
        path.write_bytes(as_lines([{**known, key: value} for value in values]))
        for name in FORMATS:
            report = import_paths(Ledger(Path(folder) / name), Settings(), [path], now=NOW, run_id="r", format=name)
            assert report.read == report.accepted + report.duplicate + report.quarantined


@pytest.mark.slow
def test_progress_of_an_archive_ends_at_its_size(desk):
    some = random.Random(1)
    days = {
        f"general/2024-01-{day:02}.json": [
            slack_message(f"17{day:02}{at:06}.000100", some.randbytes(90).hex()) for at in range(90)
        ]
        for day in range(1, 20)
    }
    path = desk.folder / "a.zip"
    path.write_bytes(slack(days))
    seen: list[Progress] = []
    with progress_to(seen.append):
        desk.read(path)
    positions = [step.done for step in seen]
    assert positions == sorted(positions)
    assert len(set(positions)) > 5
    assert positions[-1] == path.stat().st_size == seen[0].total


@pytest.mark.slow
def test_a_large_export_is_read_in_bounded_memory(desk):
    path = desk.folder / "conversations.json"
    with path.open("wb") as file:
        file.write(b"[")
        for at in range(400):  # half of it text that is kept, half of it left out: neither half may stay in memory
            conversation = as_json(talk(f"t{at}", 4) | {"pad": "x" * 40_000})
            file.write(b"," * bool(at) + conversation.replace(b" says ", b" says " + b"y" * 10_000))
        file.write(b"]")
    assert path.stat().st_size > 30 << 20
    desk.read(desk.file("first.jsonl", {"text": "a"}))
    tracemalloc.start()
    report = desk.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.accepted == 400 * 4
    assert peak < 12 << 20


def test_what_was_left_out_stands_in_the_notes(desk):
    path = desk.file(
        "s.jsonl",
        code_event("1", "user", "Hi"),
        {"type": "summary", "leafUuid": "x"},
        {"type": "summary", "leafUuid": "y"},
    )
    assert desk.read(path).files[0].notes == ("left out: 2 summary",)
