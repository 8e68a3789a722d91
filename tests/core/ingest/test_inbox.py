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
from deltalake.exceptions import DeltaError

from memstate_core.ingest import batch_import, file_progress, inbox
from memstate_core.ingest.deduplication import Deduplication
from memstate_core.ingest.importer import Importer
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.model.errors import StoreLocked
from memstate_core.policy.settings import IngestSettings, Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger import ledger
from memstate_core.state.ledger.ledger import Ledger
from tests.core.clocks import SETTLED
from tests.core.ingest.poison import holds_poison, poisoned

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


def test_dumps_are_read_and_moved(home):
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


def test_hidden_files_of_a_file_manager_are_no_failed_dumps(home):
    (home.inbox / "a.jsonl.gz").write_bytes(b"\x1f\x8b and no more")
    read(home)
    (home.failed / ".DS_Store").write_bytes(b"")
    assert inbox.failed_files(home) == ["inbox/failed/a.jsonl.gz"]


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

    def late_writer(self: Importer, *given: Any) -> Iterator[FileReport]:
        for report in read_files(self, *given):
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

    def thief(self: Importer, *given: Any) -> Iterator[FileReport]:
        for report in read_files(self, *given):
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


def any_poison(records: Iterable[Any], *_: Any) -> bool:
    return any("poison" in record for record in records)


def mixed_files(home: Home) -> None:
    """Three files that share a batch; rows 3 and 6 of the second are poisoned, and row 8 is no JSON."""
    (home.inbox / "a.jsonl").write_text('{"text": "a"}\n')
    texts = ["poison" if line in (3, 6) else f"b{line}" for line in range(1, 8)]
    (home.inbox / "b.jsonl").write_text("".join(f'{{"text": "{text}", "turn": {n}}}\n' for n, text in enumerate(texts)))
    with (home.inbox / "b.jsonl").open("a") as file:
        file.write("broken\n")
    (home.inbox / "c.jsonl").write_text('{"text": "c"}\n')


@pytest.mark.parametrize(
    ("module", "name", "is_poisoned"),
    [
        (batch_import, "validate_batch", lambda rows, *_: any(b"poison" in row.raw for row in rows)),
        (batch_import, "identity_frame", any_poison),
        (batch_import, "evidence_frame", any_poison),
        (ledger, "write_deltalake", lambda _, rows: holds_poison(rows, "text")),
    ],
    ids=["validation", "identities", "frames", "storing"],
)
def test_rows_with_which_an_import_fails_are_refused_and_the_others_are_imported(
    home, monkeypatch, module, name, is_poisoned
):
    mixed_files(home)
    with monkeypatch.context() as patch:
        poisoned(patch, module, name, is_poisoned)
        report = read(home)
    assert [(file.read, file.accepted, file.quarantined) for file in report.files] == [(1, 1, 0), (8, 5, 3), (1, 1, 0)]
    assert (report.errors, report.reasons) == ((), {"broken_json": 1, "unforeseen_error": 2})
    assert names(home.processed) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    refused = Ledger(home.ledger).scan("quarantine").sort("line").collect().to_dicts()
    assert [(row["file"], row["line"], row["reason"]) for row in refused] == [
        ("b.jsonl", 3, "unforeseen_error"),
        ("b.jsonl", 6, "unforeseen_error"),
        ("b.jsonl", 8, "broken_json"),
    ]
    assert "importing failed with it: OverflowError: a value too large for this machine" in refused[0]["detail"]
    assert json.loads(refused[0]["raw"])["text"] == "poison"
    texts = Ledger(home.ledger).scan("evidence").collect()["text"].sort().to_list()
    assert texts == ["a", "b1", "b2", "b4", "b5", "b7", "c"]


@pytest.mark.parametrize("how", ["the search fails too", "only the ledger refuses it"])
def test_a_file_whose_guilty_rows_are_not_found_fails_and_the_others_are_imported(home, monkeypatch, how):
    mixed_files(home)
    with monkeypatch.context() as patch:
        if how == "the search fails too":
            poisoned(patch, batch_import, "evidence_frame", any_poison)
            patch.setattr(batch_import, "guilty_rows", lambda *_: 1 / 0)
        else:
            poisoned(patch, Deduplication, "append_new", lambda _, rows: holds_poison(rows, "text"))
        report = read(home)
    assert [(file.read, file.accepted) for file in report.files] == [(1, 1), (0, 0), (1, 1)]
    (error,) = report.errors
    assert error.facts["path"] == str(home.inbox / "b.jsonl")
    assert (names(home.processed), names(home.failed)) == (["a.jsonl", "c.jsonl"], ["b.jsonl"])
    (home.failed / "b.jsonl").rename(home.inbox / "b.jsonl")
    assert read(home).accepted == 7


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        DeltaError("Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)"),
        StoreLocked("home", "process 7"),
        ZeroDivisionError("of every write"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_no_row_causes_is_raised_and_no_file_is_moved(home, monkeypatch, error):
    def fail(*_: Any, **__: Any) -> None:
        raise error

    mixed_files(home)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write_deltalake", fail)
        with pytest.raises(type(error)) as raised:
            read(home)
    assert raised.value is error
    assert names(home.inbox) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert read(home).accepted == 9


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
