"""The inbox: dumps are read once and put away, never deleted, never overwritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.ingest import inbox
from memstate_core.ingest.importer import Importer
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.policy.settings import IngestSettings, Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger import Ledger

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.inbox.mkdir()
    return home


def read(home: Home, settings: Settings | None = None) -> ImportReport:
    return inbox.import_inbox(home, Ledger(home.ledger), settings or Settings(), now=NOW, run_id="r")


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
