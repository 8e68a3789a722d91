"""Collection of accesses: every acknowledged one once, under interruptions and for any division into segments."""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstate_core.ingest.accesses import collect
from memstate_core.ingest.accesses.collect import AccessReport
from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.accesses.record import LONGEST_LINE
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from tests.core.ingest.accesses.conftest import GOOD, NOW, Desk, counts
from tests.core.ingest.accesses.test_journal import names, writer


def test_what_was_noted_becomes_rows(desk: Desk) -> None:
    at = datetime(2026, 4, 30, 8, 0, 0, 250_000, tzinfo=UTC)
    with AccessJournal(desk.home.accesses, "a") as journal:
        journal.record("t1", at, "server", fields=["owner", "stage", "owner"], scope="user:aya")
        journal.record("t2", NOW, "cli", failed=True)
    assert counts(desk.collect()) == (1, 2, 0, 0)
    first, second = desk.accesses().rows(named=True)
    assert first | {"access_id": None} == {
        "access_id": None,
        "scope": "user:aya",
        "topic_id": "t1",
        "fields": ["owner", "stage"],
        "at": at,
        "source": "server",
        "failed": False,
        "recorded_at": NOW,
        "run_id": "run-1",
    }
    assert (second["fields"], second["failed"], second["scope"]) == (None, True, None)
    assert first["access_id"] != second["access_id"]
    assert (names(desk.home.accesses), names(desk.home.collected)) == (["processed"], ["a.jsonl"])


def test_a_home_without_a_journal_is_nothing_to_do(desk: Desk) -> None:
    assert desk.collect() == AccessReport()
    assert not desk.home.accesses.exists()


def test_ids_follow_from_content_and_line(desk: Desk, tmp_path: Path) -> None:
    other = Desk(Home(tmp_path / "other"))
    desk.segment("a.jsonl", GOOD, GOOD)
    other.segment("b.jsonl", GOOD, GOOD)
    desk.collect()
    other.collect(NOW + timedelta(days=1))
    ids = desk.accesses()["access_id"].sort()
    assert ids.equals(other.accesses()["access_id"].sort())
    assert ids.n_unique() == 2


# Exactly once


def test_a_kill_between_append_and_move_repeats_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.segment("a.jsonl", GOOD, b"broken", GOOD)
    with monkeypatch.context() as killed:
        killed.setattr(collect, "move_into", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            desk.collect()
    before = desk.accesses()
    assert (before.height, names(desk.home.accesses)) == (2, ["a.jsonl"])
    assert counts(desk.collect(NOW + timedelta(hours=1))) == (1, 0, 2, 1)
    assert desk.accesses().equals(before)
    assert len(desk.quarantine()) == 1
    assert names(desk.home.collected) == ["a.jsonl"]


@pytest.mark.parametrize("before", ["accesses", "quarantine"])
def test_a_kill_before_an_append_loses_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    desk.segment("a.jsonl", GOOD, b"broken")
    append = Ledger.append

    def stopped(self: Ledger, table: str, *rest: Any) -> bool:
        if table == before:
            raise KeyboardInterrupt
        return append(self, table, *rest)

    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "append", stopped)
        with pytest.raises(KeyboardInterrupt):
            desk.collect()
    assert counts(desk.collect()) == (1, 1, 0, 1)
    assert (desk.accesses().height, len(desk.quarantine())) == (1, 1)


def test_a_kill_between_batches_goes_on_where_it_stopped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "BATCH_ROWS", 4)
    desk.segment("a.jsonl", *(GOOD | {"topic_id": f"t{number:02}"} for number in range(10)))
    append = Ledger.append

    def stopped(self: Ledger, table: str, rows: pl.DataFrame, app_id: str, app_version: int = 1) -> bool:
        if app_version == 3:
            raise KeyboardInterrupt
        return append(self, table, rows, app_id, app_version)

    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "append", stopped)
        with pytest.raises(KeyboardInterrupt):
            desk.collect()
    assert desk.accesses().height == 8
    assert counts(desk.collect()) == (1, 2, 8, 0)
    assert desk.accesses()["topic_id"].to_list() == [f"t{number:02}" for number in range(10)]
    assert desk.accesses()["access_id"].n_unique() == 10


def test_the_same_segment_under_another_name_adds_nothing(desk: Desk) -> None:
    first = desk.segment("a.jsonl", GOOD, b"broken")
    again = shutil.copy(first, desk.home.root / "again")
    assert counts(desk.collect()) == (1, 1, 0, 1)
    for name in ("a.jsonl", "b.jsonl"):
        shutil.copy(again, desk.home.accesses / name)
    versions = [desk.ledger.version(table) for table in ("accesses", "quarantine")]
    assert counts(desk.collect()) == (2, 0, 2, 2)
    assert [desk.ledger.version(table) for table in ("accesses", "quarantine")] == versions
    assert names(desk.home.collected) == ["a.2.jsonl", "a.jsonl", "b.jsonl"]


def test_equal_accesses_are_two_if_two_segments_hold_them(desk: Desk) -> None:
    for name in "ab":
        with AccessJournal(desk.home.accesses, name) as journal:
            journal.record("t", NOW, "server")
    assert counts(desk.collect()) == (2, 2, 0, 0)


# Live and dead writers


def test_a_segment_that_is_being_written_is_left_alone(desk: Desk) -> None:
    with writer(desk.home.accesses, "a"):
        assert desk.collect() == AccessReport()
        assert names(desk.home.accesses) == ["a.open"]


def test_what_a_killed_writer_had_flushed_is_collected(desk: Desk) -> None:
    with writer(desk.home.accesses, "a") as process:
        process.kill()
        process.wait()
        assert counts(desk.collect()) == (1, 1, 0, 0)
    assert desk.accesses()["topic_id"].to_list() == ["flushed"]
    assert names(desk.home.collected) == ["a.open"]


@pytest.mark.parametrize("torn", [b'{"topic_id": "u", "at": "20', json.dumps(GOOD).encode()])
def test_a_torn_last_line_was_never_acknowledged(desk: Desk, torn: bytes) -> None:
    desk.segment("a.open", {"segment": "a"}, GOOD, torn, end=b"")
    assert counts(desk.collect()) == (1, 1, 0, 1)
    [refused] = desk.quarantine()
    assert (refused["file"], refused["line"], refused["reason"]) == ("a.open", 3, "torn_line")
    assert refused["raw"] == torn
    assert "expected a line feed after every record" in refused["detail"]


# Bad lines

BAD: list[tuple[dict[str, Any] | bytes, str, str]] = [
    (b"broken", "broken_json", "expected one JSON object"),
    (b"\xff{}", "not_utf8", "expected UTF-8"),
    (b'["t"]', "wrong_type", "found an array, expected an object"),
    (b'{"topic_id": NaN}', "not_a_number", "found NaN"),
    (b"[" * 5000, "too_deep", "nested deeper"),
    (b'{"topic_id": "' + b"x" * LONGEST_LINE + b'"}', "line_too_long", f"expected at most {LONGEST_LINE}"),
    ({"at": GOOD["at"], "source": "cli"}, "missing_content", "$.topic_id is missing"),
    (GOOD | {"topic_id": None}, "missing_content", "$.topic_id is missing"),
    (GOOD | {"topic_id": " "}, "missing_content", "$.topic_id is blank"),
    (GOOD | {"source": ""}, "missing_content", "$.source is blank"),
    (GOOD | {"topic_id": 5}, "wrong_type", "expected `str`, got `int` - at `$.topic_id`"),
    (GOOD | {"failed": "no"}, "wrong_type", "expected `bool`, got `str` - at `$.failed`"),
    (GOOD | {"fields": "owner"}, "wrong_type", "got `str` - at `$.fields`"),
    (GOOD | {"faild": True}, "wrong_type", "unknown field `faild`"),
    (GOOD | {"fields": ["a", ""]}, "bad_value", "$.fields[1] is blank"),
    (GOOD | {"topic_id": "x" * 1025}, "bad_value", "length <= 1024 - at `$.topic_id`"),
    (GOOD | {"fields": ["x"] * 1025}, "bad_value", "length <= 1024 - at `$.fields`"),
    (GOOD | {"scope": "nobody"}, "bad_value", "$.scope: 'nobody' is not a scope: expected TYPE:ID"),
    (GOOD | {"at": "noon"}, "bad_time", "expected an ISO 8601 time"),
    (GOOD | {"at": "2026-06-02T00:00:00Z"}, "future_time", "a larger ingest.max_future_days (it is 31)"),
]


@pytest.mark.parametrize(
    ("old", "new"), [(b"gate", b"gato"), (b"T10:", b"T11:"), (b"true", b"false"), (b"user:a", b"user:b")]
)
def test_a_line_that_changed_since_it_was_written_is_refused(desk: Desk, old: bytes, new: bytes) -> None:
    """It became an access of another topic, at another time or with the opposite verdict."""
    with AccessJournal(desk.home.accesses, "s") as journal:
        for topic in ("gate", "yard"):
            journal.record(topic, NOW.replace(hour=10), "cli", failed=True, fields=["owner"], scope="user:a")
    before, _, after = journal.path.read_bytes().partition(old)
    journal.path.write_bytes(before + new + after)
    report = desk.collect()
    assert (report.accepted, report.quarantined) == (1, 1)
    assert desk.accesses()["topic_id"].to_list() == ["yard"]
    (refused,) = desk.quarantine()
    assert "was changed after it was written" in refused["detail"]


@pytest.mark.parametrize(("row", "reason", "said"), BAD)
def test_a_bad_line_is_kept_with_its_reason_and_spoils_no_other(
    desk: Desk, row: dict[str, Any] | bytes, reason: str, said: str
) -> None:
    desk.segment("a.jsonl", GOOD, b"", row, GOOD | {"topic_id": "u"})
    assert counts(desk.collect()) == (1, 2, 0, 1)
    [refused] = desk.quarantine()
    assert (refused["file"], refused["line"], refused["reason"]) == ("a.jsonl", 3, reason)
    assert said in refused["detail"]
    raw = row if isinstance(row, bytes) else json.dumps(row).encode()
    assert (refused["raw"], refused["raw_bytes"]) == (raw[:LONGEST_LINE], len(raw))
    assert desk.accesses()["topic_id"].to_list() == ["t", "u"]


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ({"fields": []}, "fields", None),
        ({"fields": None, "failed": None, "scope": None}, "failed", False),
        ({"scope": "global"}, "scope", "global:global"),
        ({"at": "2026-05-01T12:00:00.5+02:00"}, "at", datetime(2026, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
        ({"at": "2026-05-01"}, "at", datetime(2026, 5, 1, tzinfo=UTC)),
        ({"topic_id": "é\x00🙂"}, "topic_id", "é\x00🙂"),
    ],
)
def test_spellings_that_are_understood(desk: Desk, row: dict[str, Any], column: str, value: Any) -> None:
    desk.segment("a.jsonl", GOOD | row)
    assert counts(desk.collect()) == (1, 1, 0, 0)
    assert desk.accesses()[column].to_list() == [value]


# Any division of the accesses into segments

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)
USE = st.fixed_dictionaries(
    {
        "topic_id": TEXT,
        "at": st.datetimes(datetime(1990, 1, 1), datetime(2026, 5, 20), timezones=st.just(UTC)),  # noqa: DTZ001
        "source": TEXT,
        "fields": st.none() | st.lists(TEXT, max_size=3),
        "failed": st.booleans(),
        "scope": st.none() | TEXT.map(lambda name: f"user:{name}"),
    }
)
SAID = ["topic_id", "at", "source", "fields", "failed", "scope"]


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(accesses=st.lists(USE, max_size=12), data=st.data())
def test_any_division_into_segments_gives_the_same_accesses_and_loses_none(
    accesses: list[dict[str, Any]], data: st.DataObject
) -> None:
    cuts = [data.draw(st.lists(st.booleans(), min_size=len(accesses), max_size=len(accesses))) for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        found = [rows_of(Path(folder) / str(place), accesses, cut) for place, cut in enumerate(cuts)]
    expected = [use | {"fields": list(dict.fromkeys(use["fields"] or [])) or None} for use in accesses]
    assert found[0] == found[1] == sorted(map(said, expected))


def rows_of(folder: Path, accesses: list[dict[str, Any]], cut: list[bool]) -> list[str]:
    """What the ledger holds after these accesses were recorded, with a new segment and a run at each cut."""
    desk = Desk(Home(folder))
    journal = AccessJournal(desk.home.accesses, "0", limit=2)
    for place, (use, cut_here) in enumerate(zip(accesses, cut, strict=True), start=1):
        journal.record(**use)
        if cut_here:
            journal.close()
            journal = AccessJournal(desk.home.accesses, str(place), limit=2)
            desk.collect()
    journal.close()
    desk.collect()
    rows = desk.accesses()
    assert rows["access_id"].n_unique() == rows.height
    return sorted(said(row) for row in rows.select(SAID).to_dicts())


def said(use: dict[str, Any]) -> str:
    return repr([use[name] for name in SAID[:1]] + [use["at"].isoformat()] + [use[name] for name in SAID[2:]])
