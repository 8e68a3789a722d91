"""The inbox: dumps are read once and moved, never deleted, never overwritten."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memstate_core.ingest import file_progress, importer, inbox
from memstate_core.ingest.importer import Importer
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.ingest.validation.batch import ValidatedBatch, validate_batch
from memstate_core.policy.settings import IngestSettings, Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger import Ledger
from tests.core.clocks import SETTLED

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.inbox.mkdir()
    return home


def read(home: Home, settings: Settings | None = None) -> ImportReport:
    return inbox.import_inbox(home, Ledger(home.ledger), settings or Settings(), now=NOW, run_id="r", clock=SETTLED)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def test_dumps_are_read_and_put_away(home):
    (home.inbox / "a.jsonl").write_text('{"text": "a"}\nbroken\n')
    report = read(home)
    assert (report.read, report.accepted, report.quarantined) == (2, 1, 1)
    assert (names(home.inbox), names(home.processed), names(home.failed)) == ([], ["a.jsonl"], [])
    assert read(home).files == ()


def test_an_empty_or_missing_inbox_is_nothing_to_do(home, tmp_path):
    assert read(home).files == read(Home(tmp_path / "elsewhere")).files == ()


def test_files_that_are_not_ready_are_left_alone(home):
    (home.inbox / "folder").mkdir()
    for name in (".hidden.jsonl", "a.jsonl.tmp", "b.jsonl.part"):
        (home.inbox / name).write_text('{"text": "a"}')
    assert read(home).files == ()
    assert len(names(home.inbox)) == 3


def test_a_file_that_cannot_be_read_goes_to_failed_and_the_rest_goes_on(home):
    (home.inbox / "a.jsonl.gz").write_bytes(b"\x1f\x8b and no more")
    (home.inbox / "b.jsonl").write_text('{"text": "b"}')
    report = read(home)
    assert (report.accepted, len(report.errors)) == (1, 1)
    assert (names(home.processed), names(home.failed)) == (["b.jsonl"], ["a.jsonl.gz"])


def test_names_that_come_again_do_not_overwrite(home):
    for text in ("a", "b", "c"):
        (home.inbox / "dump.2026.jsonl").write_text(f'{{"text": "{text}"}}')
        read(home)
    assert names(home.processed) == ["dump.2026.2.jsonl", "dump.2026.3.jsonl", "dump.2026.jsonl"]
    assert sorted(path.read_text() for path in home.processed.iterdir()) == [f'{{"text": "{t}"}}' for t in "abc"]


def test_a_crash_before_the_move_loses_and_repeats_nothing(home, monkeypatch):
    (home.inbox / "a.jsonl").write_text('{"text": "a"}')
    with monkeypatch.context() as broken:
        broken.setattr(inbox, "move_into", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read(home)
    assert names(home.inbox) == ["a.jsonl"]
    assert read(home).duplicate == 1
    assert names(home.processed) == ["a.jsonl"]


def test_a_file_that_grows_while_it_is_read_stays_for_the_next_run(home, monkeypatch):
    path = home.inbox / "a.jsonl"
    path.write_text('{"text": "a"}\n')
    read_files = Importer.read_files

    def late_writer(self: Importer, files: Iterable[Path]) -> Iterator[FileReport]:
        for report in read_files(self, files):
            with Path(report.path).open("a") as more:
                more.write('{"text": "late"}\n')
            yield report

    with monkeypatch.context() as late:
        late.setattr(Importer, "read_files", late_writer)
        assert read(home).accepted == 1
    assert names(home.inbox) == ["a.jsonl"]
    assert read(home).accepted == 1
    assert names(home.processed) == ["a.jsonl"]


def test_a_file_that_is_taken_away_while_it_is_read_is_no_failure(home, monkeypatch):
    path = home.inbox / "a.jsonl"
    path.write_text('{"text": "a"}')
    read_files = Importer.read_files

    def thief(self: Importer, files: Iterable[Path]) -> Iterator[FileReport]:
        for report in read_files(self, files):
            path.unlink()
            yield report

    monkeypatch.setattr(Importer, "read_files", thief)
    assert read(home).accepted == 1
    assert names(home.processed) == names(home.failed) == []


def test_small_files_share_a_batch_and_are_counted_apart(home):
    for at in range(40):
        (home.inbox / f"{at:02}.jsonl").write_text(f'{{"text": "a{at}"}}\n{{"text": "shared"}}\n')
    (home.inbox / "40.jsonl").write_text('{"text": "a40", "observed_at": "no time"}\n')
    (home.inbox / "41.jsonl.gz").write_bytes(b"no gzip")
    report = read(home)
    counts = [(file.read, file.accepted, file.duplicate, file.quarantined) for file in report.files]
    assert counts == [(2, 2, 0, 0), *[(2, 1, 1, 0)] * 39, (1, 0, 0, 1), (0, 0, 0, 0)]
    assert report.reasons == {"bad_time": 1}
    ledger = Ledger(home.ledger)
    assert ledger.version("evidence") == 0
    assert ledger.scan("quarantine").collect()["file"].to_list() == ["40.jsonl"]
    assert (len(names(home.processed)), names(home.failed)) == (41, ["41.jsonl.gz"])


def test_a_batch_ends_when_it_is_full(home):
    for at in range(6):
        (home.inbox / f"{at}.jsonl").write_text("".join(f'{{"text": "{at}/{row}"}}\n' for row in range(25)))
    report = read(home, Settings(ingest=IngestSettings(chunk_rows=100)))
    assert (report.accepted, Ledger(home.ledger).version("evidence")) == (150, 2)


# One file never stops the others


def far_future() -> pa.Table:
    return pa.table({"text": ["x"], "observed_at": pa.array([1 << 60], pa.timestamp("us", "UTC"))})


def far_date() -> pa.Table:
    return pa.table({"text": ["x"], "day": pa.array([2**31 - 1], pa.date32())})


def wide_decimal() -> pa.Table:
    return pa.table({"text": ["x"], "amount": pa.array([Decimal("1.5")], pa.decimal256(50, 2))})


@pytest.mark.parametrize("table", [far_future, far_date, wide_decimal])
def test_a_parquet_file_that_polars_cannot_hold_is_that_files_failure(home, table):
    pq.write_table(table(), home.inbox / "a.parquet")
    (home.inbox / "b.jsonl").write_text('{"text": "b"}')
    report = read(home)
    assert report.accepted == 1
    [error] = report.errors
    assert str(home.inbox / "a.parquet") in error.message
    assert (names(home.processed), names(home.failed)) == (["b.jsonl"], ["a.parquet"])


def test_a_name_that_is_not_utf8_is_that_files_failure(home):
    (home.inbox / os.fsdecode(b"a\xff.jsonl")).write_text('{"text": "a"}')
    (home.inbox / "b.jsonl").write_text('{"text": "b"}')
    report = read(home)
    assert report.accepted == 1
    [error] = report.errors
    assert "a\\xff.jsonl: cannot be read: its name is not UTF-8" in error.message
    assert json.dumps(report.to_json(), ensure_ascii=False).encode()
    assert names(home.processed) == ["b.jsonl"]
    assert [os.fsencode(name) for name in names(home.failed)] == [b"a\xff.jsonl"]


@pytest.mark.parametrize("target", ["secret.jsonl", "nothing", "folder"])
def test_a_symbolic_link_is_not_followed(home, target):
    (home.root / "folder").mkdir()
    (home.root / "secret.jsonl").write_text('{"text": "secret"}')
    (home.inbox / "a.jsonl").symlink_to(home.root / target)
    report = read(home)
    assert (report.read, len(report.errors)) == (0, 1)
    assert "symbolic link" in report.errors[0].message
    assert list(home.inbox.glob("*.jsonl")) == []
    assert (home.failed / "a.jsonl").is_symlink()
    assert (home.root / "secret.jsonl").exists()


def test_an_unforeseen_error_while_rows_are_validated_is_that_files_failure(home, monkeypatch):
    def odd(rows: list[RawRow], *rest: Any) -> ValidatedBatch:
        if any(b"odd" in row.raw for row in rows):
            raise ZeroDivisionError("unforeseen")
        return validate_batch(rows, *rest)

    monkeypatch.setattr(importer, "validate_batch", odd)
    (home.inbox / "a.jsonl").write_text('{"text": "odd"}')
    (home.inbox / "b.jsonl").write_text('{"text": "b"}')
    report = read(home)
    assert (report.accepted, [error.facts["problem"] for error in report.errors]) == (1, ["unforeseen"])
    assert (names(home.processed), names(home.failed)) == (["b.jsonl"], ["a.jsonl"])


def test_a_name_of_255_bytes_may_come_twice(home):
    name = "é" * 124 + ".jsonl"
    for text in ("a", "b"):
        (home.inbox / name).write_text(f'{{"text": "{text}"}}')
        assert read(home).accepted == 1
    assert sorted(map(len, names(home.processed))) == [108, 130]


def test_a_file_fills_only_so_much_of_the_quarantine(home, monkeypatch):
    monkeypatch.setattr(file_progress, "MOST_REFUSALS", 5)
    for at, rows in enumerate((12, 3)):
        (home.inbox / f"{at}.jsonl").write_text("broken\n" * rows + json.dumps({"text": str(at)}))
    report = read(home)
    assert [(file.read, file.accepted, file.quarantined) for file in report.files] == [(13, 1, 12), (4, 1, 3)]
    assert [file.notes for file in report.files] == [
        ("7 more rows were refused than the quarantine keeps of one file: at most 5 rows and 64 MiB",), (),
    ]  # fmt: skip
    assert Ledger(home.ledger).count("quarantine") == 8


def test_the_bytes_that_a_file_puts_into_quarantine_are_bounded(home, monkeypatch):
    monkeypatch.setattr(file_progress, "MOST_REFUSED_BYTES", 3 << 20)
    (home.inbox / "a.jsonl").write_text("".join(f"{at}{'x' * (1 << 20)}\n" for at in range(6)))
    assert read(home).quarantined == 6
    assert Ledger(home.ledger).count("quarantine") == 2


@pytest.mark.slow
def test_a_long_whatsapp_message_does_not_flood_the_quarantine(home):
    lines = "12/05/2024, 10:00 - Aya: hello\n" + "more\n" * 300_000
    (home.inbox / "chat.txt").write_text(lines)
    report = read(home, Settings(ingest=IngestSettings(max_line_mib=1)))
    assert report.quarantined > 200_000
    assert Ledger(home.ledger).count("quarantine") == file_progress.MOST_REFUSALS
