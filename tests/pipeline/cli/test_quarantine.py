"""`memstate quarantine`: what was refused is listed, shown, replayed and dismissed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.conftest import Memstate

NOW = ("--now", "2026-05-01T00:00:00Z")
LATER = ("--now", "2027-06-01T00:00:00Z")
ROWS = """{"text": "good", "observed_at": "2026-01-01"}
broken
{"text": "from the future", "observed_at": "2027-01-01"}
{"text": "hi\\u001b[2J", "observed_at": "yesterday"}
"""


@pytest.fixture
def filled(memstate: Memstate, tmp_path: Path) -> Memstate:
    (tmp_path / "dump.jsonl").write_text(ROWS)
    assert memstate("import", str(tmp_path / "dump.jsonl"), *NOW).code == 0
    return memstate


def ids(memstate: Memstate) -> dict[str, str]:
    rows = memstate("quarantine", "list", "--json").document["rows"]
    return {row["reason"]: row["quarantine_id"] for row in rows}


def test_open_rows_are_listed_with_file_line_and_reason(filled: Memstate) -> None:
    document = filled("quarantine", "list", "--json").document
    assert (document["open"], document["replayed"], document["dismissed"]) == (3, 0, 0)
    assert document["by_reason"] == {"bad_time": 1, "broken_json": 1, "future_time": 1}
    assert [(row["file"], row["line"]) for row in document["rows"]] == [("dump.jsonl", n) for n in (2, 3, 4)]
    assert filled("quarantine", "list", "--reason", "bad_time", "--json").document["open"] == 1
    assert filled("quarantine", "list", "--file", "other", "--json").document["rows"] == []
    plain = filled("quarantine").stdout
    assert plain == filled("quarantine", "list").stdout
    assert "dump.jsonl, line 2" in plain
    assert plain.endswith("3 open, 0 replayed, 0 dismissed\n")


def test_a_row_is_shown_with_its_bytes(filled: Memstate) -> None:
    name = ids(filled)["bad_time"]
    document = filled("quarantine", "show", name, "--json").document
    assert document["raw"] == ROWS.splitlines()[3]
    shown = filled("quarantine", "show", name[:9]).stdout
    assert '"yesterday"' in shown
    assert "\x1b" not in shown


def test_replayed_and_dismissed_rows_are_no_longer_open(filled: Memstate) -> None:
    named = ids(filled)
    assert filled("quarantine", "dismiss", named["broken_json"], "--why", "a log line", "--json").document == {
        "dismissed": 1
    }
    replayed = filled("quarantine", "replay", "--all", *LATER, "--json")
    assert (replayed.code, replayed.document["accepted"]) == (1, 1)
    assert [row["quarantine_id"] for row in replayed.document["refused"]] == [named["bad_time"]]
    rows = filled("quarantine", "list", "--all", "--json").document["rows"]
    assert {row["reason"]: (row["state"], row["why"]) for row in rows} == {
        "broken_json": ("dismissed", "a log line"), "future_time": ("replayed", None), "bad_time": ("open", None),
    }  # fmt: skip
    status = filled("status", "--json").document
    assert (status["quarantined"], status["quarantined_open"], status["evidence"]) == (3, 1, 2)
    assert filled("quarantine", "replay", "--reason", "future_time", *LATER).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "expected ids of rows, --reason CODE, --file NAME or --all"),
        (["dismiss", "--all"], "expected --why TEXT"),
        (["dismiss", "--why", "x"], "expected ids of rows"),
        (["show", "nothing"], "no such row is open"),
        (["replay", "zzz"], "`memstate quarantine list --all` shows the ids"),
        (["replay", "--reason", "nope"], "'nope' is no reason: expected one of not_utf8, broken_json"),
        (["dismiss", "--reason", "nope", "--why", "x"], "'nope' is no reason"),
        (["list", "--reason", "nope"], "'nope' is no reason"),
    ],
)
def test_a_command_that_names_no_row_is_refused(filled: Memstate, arguments: list[str], said: str) -> None:
    answer = filled("quarantine", *arguments)
    assert answer.code == 2
    assert said in " ".join(answer.stderr.split())
    assert filled("quarantine", "list", "--json").document["open"] == 3


def test_a_command_that_matches_no_open_row_says_which_there_are(filled: Memstate) -> None:
    for arguments in (["dismiss", "--file", "nope", "--why", "x"], ["replay", "--file", "nope"]):
        answer = filled("quarantine", *arguments)
        assert (answer.code, "0" in answer.stdout) == (0, True)
        assert "no open row matches --file nope; open are: 1 bad_time of dump.jsonl, 1 broken_json of" in answer.stderr
    assert filled("quarantine", "replay", "--reason", "too_deep").stderr.startswith("no open row matches --reason too")
    assert filled("quarantine", "dismiss", "--all", "--why", "x", "--json").stderr == ""
    assert "no open row matches --all; open are: none" in filled("quarantine", "replay", "--all").stderr


@pytest.mark.slow
def test_doctor_names_files_that_could_not_be_read_until_they_are_gone(memstate: Memstate, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "inbox").mkdir(parents=True)
    (home / "inbox" / "cut.jsonl.gz").write_bytes(b"\x1f\x8bnot really")
    assert memstate("maintain", *NOW).code == 0
    found = {row["name"]: row for row in memstate("doctor", "--json").document}["refused input"]
    assert not found["ok"]
    assert "inbox/failed/cut.jsonl.gz could not be read" in found["detail"]
    (home / "inbox" / "failed" / "cut.jsonl.gz").unlink()
    found = {row["name"]: row for row in memstate("doctor", "--json").document}["refused input"]
    assert (found["ok"], found["detail"]) == (True, "0 rows in quarantine")


def test_the_bare_command_takes_json_as_its_list_does(filled: Memstate) -> None:
    assert filled("quarantine", "--json").document == filled("quarantine", "list", "--json").document
    refused = filled("quarantine", "--json", "list")
    assert refused.code == 2
    assert "expected memstate quarantine list … --json" in refused.stderr
