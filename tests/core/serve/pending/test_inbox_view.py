"""The view of the inbox: which rows it holds within its limits, whatever the order of files and requests."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from memstate_core.ingest.api_files import make_key, signed
from memstate_core.ingest.dumps import open_dump
from memstate_core.model.errors import UnreadableDump
from memstate_core.model.text import parse_moment
from memstate_core.policy.settings import Settings
from memstate_core.serve.pending import fair_share, inbox_view
from memstate_core.serve.pending.inbox_view import InboxView
from tests.core.ingest.poison import poisoned

NOW = parse_moment("2026-12-24T00:00:00Z")


class Inbox:
    """A folder with one file per number, numbered by age, and a view of it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.view = folder, InboxView(folder, folder.parent / "inbox.key", Settings())

    def write(self, number: int, scope: str | None, lines: int, *, noted: bool) -> Path:
        named = {} if scope is None else {"scope": {"type": "user", "id": scope}}
        rows = ({"text": f"{number}/{line}"} | named for line in range(lines))
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        file = self._folder / f"api-{number * 10**9:020d}-x.jsonl"
        file.write_bytes(data)
        if noted:
            self.view.note(file.name, data, NOW)
        return file

    def texts(self) -> list[str]:
        return self.view.observations(NOW).rows["text"].to_list()

    def cut(self) -> frozenset[str]:
        return self.view.observations(NOW).cut


def test_the_newest_are_kept_and_a_cut_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "SCOPE_ROWS", 4)
    inbox = Inbox(tmp_path / "inbox")
    first = inbox.write(1, None, 2, noted=True)
    inbox.write(2, None, 2, noted=False)
    assert inbox.texts() == ["2/0", "2/1", "1/0", "1/1"]
    assert inbox.cut() == frozenset()
    last = inbox.write(3, None, 1, noted=True)
    assert inbox.texts() == ["3/0", "2/0", "2/1", "1/0"]
    assert inbox.cut() == {"global:global"}
    last.unlink()
    assert inbox.texts() == ["2/0", "2/1", "1/0", "1/1"]
    assert inbox.cut() == frozenset()
    first.unlink()
    assert inbox.texts() == ["2/0", "2/1"]
    assert inbox.view.observations(NOW).complete


@pytest.mark.parametrize("noted", [True, False])
def test_newer_files_of_a_scope_take_no_row_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    monkeypatch.setattr(inbox_view, "FILES_BYTES", 300)
    inbox = Inbox(tmp_path / "inbox")
    inbox.write(1, "b", 1, noted=noted)
    assert inbox.texts() == ["1/0"]
    for number in (2, 3):
        inbox.write(number, "a", 5, noted=noted)
        assert "1/0" in inbox.texts()
    assert len(inbox.texts()) == 11
    assert inbox.view.observations(NOW).complete


def test_acknowledged_lines_of_a_scope_stay_while_others_write_and_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_view, "FILES_BYTES", 300)
    monkeypatch.setattr(inbox_view, "UNPARSED_BYTES", 100)
    inbox = Inbox(tmp_path / "inbox")
    for number, scope, lines in ((1, "b", 1), (2, "a", 5), (3, "a", 5)):
        inbox.write(number, scope, lines, noted=True)
    assert len(inbox.texts()) == 11
    assert inbox.view.observations(NOW).complete


def test_after_a_restart_each_request_reads_further_and_a_file_beyond_the_limit_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_view, "FILES_BYTES", 330)
    inbox = Inbox(tmp_path / "inbox")
    for number, scope, lines in ((1, "b", 1), (2, "a", 5), (3, "a", 5)):
        inbox.write(number, scope, lines, noted=False)
    first = inbox.view.observations(NOW)
    assert (set(first.rows["text"]), first.complete) == ({"1/0", *(f"3/{line}" for line in range(5))}, False)
    assert len(inbox.texts()) == 11
    assert inbox.view.observations(NOW).complete
    inbox.write(4, "a", 9, noted=False)
    assert len(inbox.texts()) == 11
    assert not inbox.view.observations(NOW).complete


@pytest.mark.parametrize("noted", [True, False])
def test_rows_that_raise_an_unforeseen_error_are_left_out_and_the_view_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, noted: bool
) -> None:
    inbox = Inbox(tmp_path / "inbox")
    poisoned(monkeypatch, inbox_view, "evidence_frame", lambda records, *_: any("1/3" in row for row in records))
    for number in (1, 2):
        inbox.write(number, "a", 6, noted=noted)
    assert sorted(inbox.texts()) == sorted(
        f"{number}/{line}" for number in (1, 2) for line in range(6) if (number, line) != (1, 3)
    )
    assert not inbox.view.observations(NOW).complete
    assert "1 row cannot be read" in caplog.text


def test_a_whole_file_that_cannot_be_read_keeps_no_other_from_being_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox(tmp_path / "inbox")
    poisoned(monkeypatch, inbox_view, "evidence_frame", lambda _, moment, __: moment.timestamp() == 1)
    for number in (1, 2):
        inbox.write(number, "a", 2, noted=False)
    assert sorted(inbox.texts()) == ["2/0", "2/1"]
    assert not inbox.view.observations(NOW).complete


def test_a_named_pipe_and_a_link_block_nothing(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    inbox.write(1, "a", 1, noted=False)
    os.mkfifo(tmp_path / "inbox" / "pipe.jsonl")
    (tmp_path / "inbox" / "link.jsonl").symlink_to(tmp_path / "inbox" / "pipe.jsonl")
    (tmp_path / "inbox" / "folder.jsonl").mkdir()
    found: list[str] = []
    reading = threading.Thread(target=lambda: found.extend(inbox.texts()), daemon=True)
    reading.start()
    reading.join(30)
    assert found == ["1/0"]


def test_an_inbox_waits_for_no_writer_of_a_named_pipe(tmp_path: Path) -> None:
    """A file may become one between the listing of the folder and its opening."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    ended = threading.Event()

    def attempt() -> None:
        with suppress(UnreadableDump), open_dump(tmp_path / "pipe.jsonl", 1 << 20, follow=False) as dump:
            assert not list(dump.batches(10, 1000))
        ended.set()

    threading.Thread(target=attempt, daemon=True).start()
    assert ended.wait(30)


def test_a_signed_file_is_read_as_observations_under_any_name(tmp_path: Path) -> None:
    """Its first row looks like a chat export."""
    inbox = Inbox(tmp_path / "inbox")
    rows = [{"title": "Chat", "messages": [{"role": "user", "content": "x"}]}, {"text": "beside it"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / "inbox" / "renamed.jsonl").write_bytes(signed(lines, make_key(tmp_path / "inbox.key")))
    assert sorted(inbox.view.observations(NOW).rows["text"], key=str) == [None, "beside it"]


@pytest.mark.parametrize("limit", ["TOTAL_ROWS", "TOTAL_BYTES"])
def test_the_total_is_shared_round_by_round(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, limit, 4)
    rows = pl.DataFrame({"scope": ["a", "a", "a", "b", "a", "c"], "n": range(6)})
    assert fair_share.fair_share(rows, pl.lit(1))["n"].to_list() == [0, 1, 3, 5]
