"""Collection of accesses from lines and segments that raise unforeseen errors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memstate_core.ingest import file_progress
from memstate_core.ingest.accesses import collect, record
from memstate_core.ingest.accesses.collect import AccessReport
from memstate_core.state.ledger import ledger
from memstate_core.state.ledger.ledger import Ledger
from tests.core.ingest.accesses.conftest import GOOD, Desk, counts
from tests.core.ingest.accesses.test_journal import names
from tests.core.ingest.poison import holds_poison, poisoned


@pytest.mark.parametrize(
    ("module", "name", "is_poisoned"),
    [
        (record, "read_access", lambda raw, _: b"poison" in raw),
        (collect, "project", lambda rows, _: holds_poison(rows, "topic_id")),
        (ledger, "write_deltalake", lambda _, rows: holds_poison(rows, "topic_id")),
    ],
    ids=["parsing", "frames", "storing"],
)
def test_lines_with_which_a_collection_fails_are_refused_and_the_others_are_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, is_poisoned: Callable[..., bool]
) -> None:
    rows = [GOOD | {"topic_id": "poison" if n in (3, 11) else f"t{n:02}"} for n in range(16)]
    desk.segment("a.jsonl", *rows, b"broken")
    desk.segment("b.jsonl", GOOD)
    with monkeypatch.context() as patch:
        poisoned(patch, module, name, is_poisoned)
        assert counts(desk.collect()) == (2, 15, 0, 3)
    refused = desk.quarantine()
    assert [(row["file"], row["line"], row["reason"]) for row in refused] == [
        ("a.jsonl", 4, "unforeseen_error"),
        ("a.jsonl", 12, "unforeseen_error"),
        ("a.jsonl", 17, "broken_json"),
    ]
    assert "collecting accesses failed with it: OverflowError: a value too large" in refused[0]["detail"]
    assert json.loads(refused[0]["raw"])["topic_id"] == "poison"
    assert names(desk.home.collected) == ["a.jsonl", "b.jsonl"]


def test_an_error_that_no_line_causes_is_raised_and_nothing_is_moved(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.segment("a.jsonl", GOOD, GOOD)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.collect()
    assert names(desk.home.accesses) == ["a.jsonl"]
    assert counts(desk.collect()) == (1, 2, 0, 0)


def test_a_segment_that_cannot_be_read_is_named_and_the_others_are_collected(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = desk.home.root / "outside"
    desk.segment("b.jsonl", GOOD | {"topic_id": "outside"}).rename(outside)
    desk.segment("c.jsonl", GOOD)
    (desk.home.accesses / "b.jsonl").symlink_to(outside)
    (desk.home.accesses / "d.open").symlink_to(outside)
    desk.segment("a.jsonl", GOOD)
    sound = collect.opened

    def unreadable_disk(path: Path) -> Any:
        if path.name == "a.jsonl":
            raise OSError(5, "Input/output error")
        return sound(path)

    monkeypatch.setattr(collect, "opened", unreadable_disk)
    report = desk.collect()
    assert counts(report) == (4, 1, 0, 0)
    assert len(report.errors) == 3
    assert "a.jsonl" in report.errors[0]
    assert "Input/output error" in report.errors[0]
    assert all("symbolic link that is not followed" in error for error in report.errors[1:])
    assert names(desk.home.failed_accesses) == ["a.jsonl", "b.jsonl", "d.open"]
    assert names(desk.home.collected) == ["c.jsonl"]
    assert desk.collect() == AccessReport()


def test_a_segment_whose_name_is_not_utf_8_is_collected(desk: Desk) -> None:
    path = desk.segment("a.jsonl", GOOD, b"broken")
    path.rename(path.with_name(os.fsdecode(b"\xff.jsonl")))
    assert counts(desk.collect()) == (1, 1, 0, 1)
    assert desk.quarantine()[0]["file"] == "\\xff.jsonl"


def test_one_segment_adds_a_bounded_amount_to_the_quarantine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_progress, "MOST_REFUSALS", 5)
    monkeypatch.setattr(collect, "BATCH_ROWS", 4)
    desk.segment("a.jsonl", *([b"broken"] * 30), GOOD)
    assert counts(desk.collect()) == (1, 1, 0, 30)
    assert len(desk.quarantine()) == 5
