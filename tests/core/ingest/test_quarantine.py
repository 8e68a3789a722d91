"""Refused rows are dealt with once: replayed under other settings, or dismissed; the rows themselves stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest import quarantine
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason
from memstate_core.ingest.validation.quarantine import Refusal, quarantine_frame
from memstate_core.state.ledger.ledger import Ledger
from tests.core.ingest.conftest import NOW, Desk
from tests.core.ingest.poison import holds_poison, poisoned

LATER = NOW + timedelta(days=400)
FUTURE: dict[str, Any] = {"observation_id": "f", "text": "from the future", "observed_at": "2027-01-01"}
BAD: list[dict[str, Any] | bytes] = [b"broken", {"text": 5}, FUTURE]


def listed(desk: Desk) -> pl.DataFrame:
    return quarantine.quarantined(desk.ledger).collect()


def states(desk: Desk) -> dict[str, str]:
    return dict(listed(desk).select("reason", "state").iter_rows())


def replayed(desk: Desk, rows: pl.DataFrame, **options: Any) -> quarantine.Replayed:
    given = {"default_scope": "user:ines", "now": LATER, "run_id": "again"} | options
    return quarantine.replay(desk.ledger, desk.settings, rows, **given)


def test_a_replay_takes_what_is_valid_now_and_leaves_the_rest_open(desk: Desk) -> None:
    desk.rows({"text": "good"}, *BAD)
    before = desk.quarantine()
    assert quarantine.open_count(desk.ledger) == 3
    done = replayed(desk, listed(desk))
    assert (done.accepted, done.duplicate) == (1, 0)
    assert sorted(done.refused["reason"]) == ["broken_json", "wrong_type"]
    assert states(desk) == {"broken_json": "open", "wrong_type": "open", "future_time": "replayed"}
    (row,) = [row for row in desk.evidence() if row["observation_id"] == "f"]
    assert (row["scope"], row["run_id"], row["imported_at"]) == ("user:ines", "again", LATER)
    assert desk.quarantine() == before
    assert quarantine.open_count(desk.ledger) == 2


def test_a_second_replay_and_the_same_dump_again_change_nothing(desk: Desk) -> None:
    desk.rows(FUTURE)
    stale = listed(desk)
    assert replayed(desk, stale).accepted == 1
    again = replayed(desk, stale)
    assert (again.accepted, again.duplicate, again.refused.height) == (0, 0, 0)
    desk.rows(FUTURE)
    assert states(desk) == {"future_time": "replayed"}
    assert desk.ledger.count("evidence") == 1


def test_a_row_that_came_with_another_dump_is_a_duplicate(desk: Desk) -> None:
    desk.rows(FUTURE)
    desk.read(desk.file("later.jsonl", FUTURE), now=LATER, default_scope="user:ines")
    done = replayed(desk, listed(desk))
    assert (done.accepted, done.duplicate, desk.ledger.count("evidence")) == (0, 1, 1)


def test_a_row_whose_id_has_other_content_by_now_stays_open(desk: Desk) -> None:
    desk.rows(FUTURE)
    other = FUTURE | {"text": "another", "observed_at": "2026-01-01"}
    desk.read(desk.file("later.jsonl", other), default_scope="user:ines")
    done = replayed(desk, listed(desk))
    assert done.refused["reason"].to_list() == ["conflicting_observation"]
    assert quarantine.open_count(desk.ledger) == 1


@pytest.mark.parametrize("where", ["validation", "storage"])
def test_a_row_that_raises_an_unforeseen_error_keeps_no_other_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    desk.rows(FUTURE | {"observation_id": "poison"}, *BAD, FUTURE | {"observation_id": "g"})
    with monkeypatch.context() as patch:
        if where == "validation":
            poisoned(patch, quarantine, "validate_batch", lambda rows, *_: any(b"poison" in row.raw for row in rows))
        else:
            poisoned(patch, Ledger, "append", lambda _ledger, _table, rows, *_: holds_poison(rows, "observation_id"))
        done = replayed(desk, listed(desk))
    (detail,) = done.refused.filter(pl.col("reason") == "unforeseen_error")["detail"]
    assert detail == "importing failed with it: OverflowError: a value too large for this machine"
    assert (done.accepted, quarantine.open_count(desk.ledger)) == (2, 3)
    assert replayed(desk, listed(desk)).accepted == 1


def test_an_error_that_comes_without_the_rows_is_raised(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.rows(FUTURE)
    poisoned(monkeypatch, quarantine, "evidence_frame", lambda *_: True)
    with pytest.raises(OverflowError):
        replayed(desk, listed(desk))
    assert quarantine.open_count(desk.ledger) == 1


def test_rows_that_are_no_whole_observations_are_not_replayed(desk: Desk) -> None:
    """A message of a chat export with a `text` of its own, a row cut at a megabyte, and accepted evidence."""
    message = b'{"type": "message", "user": "U1", "text": "hello", "ts": "x"}'
    rows = [
        Refusal(RawRow(1, message, len(message)), Reason.BAD_TIME, "ts"),
        Refusal(RawRow(2, b'{"text": "cut', 1 << 22, sha256="0" * 64), Reason.LINE_TOO_LONG, "long"),
        Refusal(RawRow(0, b'{"text": "x"}', 13), Reason.SET_ASIDE, "aside"),
    ]
    with desk.ledger.writing("a test"):
        desk.ledger.append("quarantine", quarantine_frame(rows, "export.json", NOW, "r"), "one")
    done = replayed(desk, listed(desk))
    details = dict(done.refused.select("reason", "detail").iter_rows())
    assert "it has ts, type, user" in details["unknown_word"]
    assert "only the first 13 of its 4,194,304 bytes" in details["line_too_long"]
    assert "memstate undo ID" in details["set_aside"]
    assert desk.ledger.count("evidence") == 0


def test_a_dismissed_row_is_kept_with_the_reason(desk: Desk) -> None:
    desk.rows(*BAD)
    broken = listed(desk).filter(pl.col("reason") == "broken_json")
    assert quarantine.dismiss(desk.ledger, broken, "a log line", NOW, "r") == 1
    assert quarantine.dismiss(desk.ledger, broken, "again", NOW, "r2") == 0
    (row,) = listed(desk).filter(pl.col("state") == "dismissed").to_dicts()
    assert (row["reason"], row["why"], row["raw"]) == ("broken_json", "a log line", b"broken")
    assert replayed(desk, broken).refused.is_empty()


def test_a_ledger_without_actions_has_open_rows_only(desk: Desk) -> None:
    assert quarantine.open_count(desk.ledger) == 0
    desk.rows(*BAD)
    assert desk.ledger.version(quarantine.ACTIONS) is None
    assert set(states(desk).values()) == {"open"}


@pytest.mark.parametrize("step", [0, 1])
def test_a_kill_between_evidence_and_record_repeats_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    desk.rows(FUTURE)
    rows, append, calls = listed(desk), Ledger.append, []

    def killed(ledger: Ledger, *given: Any) -> bool:
        calls.append(given)
        if len(calls) == step + 1:
            raise InterruptedError
        return append(ledger, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", killed)
        with pytest.raises(InterruptedError):
            replayed(desk, rows)
    assert desk.ledger.count("evidence") == step
    done = replayed(desk, rows)
    assert (done.accepted, done.duplicate) == (1 - step, step)
    assert states(desk) == {"future_time": "replayed"}
