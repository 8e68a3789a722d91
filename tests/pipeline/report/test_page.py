"""The page of a run: content, escaping, and the same bytes for the same data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_pipeline.report import ReportData, latest_report, render_report, write_report
from memstate_pipeline.report.format import (
    NOT_KNOWN,
    counted,
    duration,
    listed,
    moment,
    number,
    score,
    verdict,
)
from memstate_pipeline.report.page import NO_DECISIONS

pytestmark = pytest.mark.slow

MERGES = ("survivor", "survivor_title", "dropped", "dropped_title", "scope", "probability", "reason", "reading")
ARCHIVED = ("topic_id", "title", "scope", "salience", "reason")
RESTORED = ("topic_id", "title", "scope", "reason")
PROBLEMS = ("kind", "topic_id", "detail")
NUMBERS: dict[str, Any] = {"probability": pl.Float64, "salience": pl.Float64}
GROWTH: dict[str, Any] = {"snapshot": pl.Int64, "now": pl.Datetime("us", "UTC")}
GROWTH |= dict.fromkeys(("active", "archived", "merged", "evidence"), pl.Int64)
NOW = datetime(2026, 4, 22, 2, tzinfo=UTC)


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]] | None = None) -> pl.DataFrame:
    return pl.DataFrame(rows or [], {name: NUMBERS.get(name, pl.String) for name in columns}, orient="row")


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": "r-20260422",
        "now": NOW.isoformat(),
        "shard": "s0",
        "snapshot": 12,
        "previous_snapshot": 11,
        "state_hash": "ab" * 32,
        "counts": {},
        "expected_false_merges": 0.0,
        "seconds": {},
        "checks": [],
        "ingest": {"read": 0, "accepted": 0, "duplicate": 0, "quarantined": 0, "reasons": {}, "errors": []},
        "totals": {},
        "warnings": [],
    } | changes


def quiet_night(**changes: Any) -> ReportData:
    """A run in which nothing happened in an empty store, but for the given changes of its summary."""
    return ReportData(
        summary=summary(**changes),
        decisions=NO_DECISIONS,
        merges=table(MERGES),
        archived=table(ARCHIVED),
        restored=table(RESTORED),
        problems=table(PROBLEMS),
        salience=table(("scope", "state", "salience")),
        growth=pl.DataFrame(schema=GROWTH),
    )


def busy_night(title: str = "Acme renewal") -> ReportData:
    """A run with a row in every section."""
    data = quiet_night(
        counts={"evidence": 1234567, "topics_created": 310, "merges": 1, "restored": 0, "archived": 1},
        expected_false_merges=0.034,
        calibration=[
            {"probability_from": 0.97, "pairs": 4, "merged": 3, "expected_false": 0.03},
            {"probability_from": 0.0, "pairs": 900, "merged": 0, "expected_false": 0.0},
        ],
        seconds={"evidence": 1.25, "topic_embeddings": 74.6, "merges": 0.012},
        checks=[{"name": "c1_query_soundness", "passed": True, "severity": "error", "detail": "0 of 310"}],
        ingest={
            "read": 1240000,
            "accepted": 1234567,
            "duplicate": 5000,
            "quarantined": 433,
            "reasons": {"bad_scope": 400, "id_conflict": 33},
            "errors": [{"file": "inbox/cut.jsonl.gz", "detail": title}],
        },
        totals={"active": 48210, "archived": 17},
        warnings=[f"watch {title}"],
        policy={"forget_salience_threshold": 0.05},
    )
    states = ["active"] * 40 + ["archived"] * 3 + ["merged"]
    values = [0.02 * 1.16**n for n in range(40)] + [0.0, 0.01, 0.02, 1.0]
    runs = range(5, 12)
    return replace(
        data,
        merges=table(MERGES, [("t-1", title, "t-2", f"{title} 2", "user:aya", 0.9731, "same text", None)]),
        archived=table(ARCHIVED, [("t-3", title, "user:aya", 0.012, "salience below 0.05")]),
        restored=table(RESTORED, [("t-4", title, "user:aya", "asked for again")]),
        problems=table(PROBLEMS, [("dangling_edge", "t-5", f"part_of {title}")]),
        salience=pl.DataFrame({"scope": "user:aya", "state": states, "salience": values}),
        growth=pl.DataFrame(
            {
                "snapshot": list(runs),
                "now": [NOW - timedelta(days=11 - n) for n in runs],
                "active": [n * 4000 for n in runs],
                "archived": list(runs),
                "merged": [n * 20 for n in runs],
                "evidence": [n * 100000 for n in runs],
            },
            schema=GROWTH,
        ),
    )


def section(page: str, name: str) -> str:
    found = re.search(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert found is not None, f"no section {name}"
    return found[1]


def test_titles_from_users_are_escaped_wherever_they_stand() -> None:
    page = render_report(busy_night(title='<script>alert("x")</script>'))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 7


def test_reason_codes_and_check_details_are_escaped() -> None:
    hostile = '"><img src=x onerror=alert(1)>'
    checks = [{"name": hostile, "passed": False, "severity": "warn", "detail": hostile}]
    page = render_report(quiet_night(run_id="r", checks=checks, seconds={hostile: 1.0}, counts={hostile: 1}))
    assert "<img" not in page


def test_the_page_needs_no_network_and_runs_no_script() -> None:
    page = render_report(busy_night())
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page) + re.findall(r"url\(([^)]*)\)", page)
    elsewhere = {target for target in loaded if not target.startswith(("#", "data:"))}
    assert elsewhere == {"r-20260422-s0.json", "index.html"}
    assert "@import" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("counts", "Nothing."),
        ("checks", "No checks."),
        ("seconds", "No timings."),
        ("merged", "Nothing."),
        ("archived", "Nothing."),
        ("restored", "Nothing."),
        ("quarantine", "Nothing was quarantined."),
        ("problems", "Nothing."),
        ("plots", "Nothing."),
    ],
)
def test_an_empty_section_stays_and_says_so(name: str, says: str) -> None:
    part = section(render_report(quiet_night()), name)
    assert says in part
    assert "<table" not in part


def test_a_summary_with_only_its_names_still_makes_a_page() -> None:
    page = render_report(replace(quiet_night(), summary={"run_id": "r", "shard": "s0"}))
    assert "Not published" in page


def test_explanations_are_beside_the_archived_topics() -> None:
    sentence = "Nothing was archived: user:aya has 212 active topics, under the soft limit of 500."
    assert sentence in section(render_report(quiet_night(explanations=[sentence])), "archived")


def test_a_merge_shows_its_reading_or_else_its_reason() -> None:
    data = busy_night()
    assert "same text" in section(render_report(data), "merged")
    read = render_report(replace(data, merges=data.merges.with_columns(reading=pl.lit("price differs (<b> vs 2)"))))
    assert "price differs (&lt;b&gt; vs 2)" in section(read, "merged")
    assert "same text" not in section(read, "merged")


def test_same_data_same_bytes() -> None:
    assert render_report(busy_night()) == render_report(busy_night())


def test_same_data_same_bytes_in_another_process() -> None:
    script = "from tests.pipeline.report.test_page import *; print(render_report(busy_night()), end='')"
    assert run_python(script) == render_report(busy_night())


def test_matplotlib_is_imported_only_to_draw() -> None:
    script = "import sys, memstate_pipeline.report; print('matplotlib' in sys.modules, end='')"
    assert run_python(script) == "False"


def run_python(script: str) -> str:
    """What a fresh interpreter prints, its hash seed another than ours."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, encoding="utf-8").stdout


def test_hundreds_of_runs_do_not_make_a_heavy_page() -> None:
    data = busy_night()
    runs = pl.DataFrame({name: range(1, 1001) for name in GROWTH if name != "now"})
    growth = runs.with_columns(now=pl.lit(NOW)).select(*GROWTH)
    assert len(render_report(replace(data, growth=growth))) < 150_000


def test_ids_stay_unique_with_two_plots_on_the_page() -> None:
    ids = re.findall(r'\bid="([^"]+)"', render_report(busy_night()))
    assert len(ids) == len(set(ids))


def test_plots_take_their_colours_from_the_page() -> None:
    plots = section(render_report(busy_night()), "plots")
    assert plots.count("<svg") == 2
    assert "#0a0b" not in plots
    assert "#000" not in plots
    assert "archive threshold" in plots


def test_without_a_threshold_no_line_is_drawn() -> None:
    data = busy_night()
    plots = section(render_report(replace(data, summary=summary())), "plots")
    assert "threshold" not in plots


def test_one_run_and_unmeasured_salience_can_be_drawn() -> None:
    data = busy_night()
    salience = pl.DataFrame({"scope": "user:aya", "state": "active", "salience": [None, float("nan")]})
    plots = section(render_report(replace(data, growth=data.growth.head(1), salience=salience)), "plots")
    assert plots.count("<svg") == 1
    assert "1 kept snapshot, 2026-04-16 02:00 UTC." in plots


def test_large_numbers_have_separators() -> None:
    page = render_report(busy_night())
    assert "<b>1,234,567</b>" in page
    assert "<dd>48,210</dd>" in page
    assert "1,240,000 read: 1,234,567 accepted, 5,000 duplicate, 433 quarantined." in page
    assert "0.034 of the merged pairs are expected to be wrong" in page
    assert "3 at 0.970 or more, 0.03 expected to be wrong." in " ".join(page.split())


def test_a_long_table_is_cut_and_says_how_long_it_is() -> None:
    rows = [(f"t-{n}", f"title {n}", "user:aya", 0.01, "faded") for n in range(1234)]
    part = section(render_report(replace(quiet_night(), archived=table(ARCHIVED, rows))), "archived")
    assert part.count("<tr>") == 1 + 50
    assert "Showing the first 50 of 1,234." in part
    assert "title 49<" in part
    assert "title 50<" not in part


def test_a_table_that_is_shown_whole_does_not_say_that_it_was_cut() -> None:
    rows = [(f"t-{n}", None, "user:aya", 0.01, "faded") for n in range(50)]
    part = section(render_report(replace(quiet_night(), archived=table(ARCHIVED, rows))), "archived")
    assert "Showing" not in part
    assert part.count("untitled") == 50


def test_a_file_that_could_not_be_read_is_named_once() -> None:
    error = "inbox/cut.jsonl.gz: not a gzip file"
    html = render_report(quiet_night(warnings=[error, "another"], ingest={"errors": [error]}))
    assert (html.count("cut.jsonl.gz"), html.count("<li>another</li>")) == (1, 1)


def test_failed_checks_come_first() -> None:
    checks = [
        {"name": "c1", "passed": True, "severity": "error", "detail": ""},
        {"name": "c4", "passed": False, "severity": "warn", "detail": "3 values lack evidence"},
    ]
    part = section(render_report(quiet_night(checks=checks)), "checks")
    assert part.index("c4") < part.index("c1")
    assert "1 of 2 failed." in part


def test_the_json_has_the_summary_and_every_row(tmp_path: Path) -> None:
    rows = [(f"t-{n}", f"title {n}", "user:aya", float("nan"), "faded") for n in range(75)]
    data = replace(busy_night(), archived=table(ARCHIVED, rows))
    page, document = write_report(tmp_path / "reports", data)
    read = json.loads(document.read_text())
    assert (page.name, document.name) == ("r-20260422-s0.html", "r-20260422-s0.json")
    assert {key: read[key] for key in data.summary} == data.summary
    assert [row["topic_id"] for row in read["archived"]] == [f"t-{n}" for n in range(75)]
    assert read["archived"][0]["salience"] is None
    assert read["merges"] == data.merges.to_dicts()
    assert read["restored"] == data.restored.to_dicts()
    assert read["problems"] == data.problems.to_dicts()


def test_writing_again_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    first = write_report(tmp_path, quiet_night(now=NOW))
    assert write_report(tmp_path, busy_night()) == first
    assert sorted(tmp_path.iterdir()) == sorted([*first, tmp_path / "index.html"])
    assert "Acme renewal" in first[0].read_text()


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, document = write_report(tmp_path, quiet_night())
    before = page.read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(f"no space left for {self} as {target}")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        write_report(tmp_path, busy_night())
    assert page.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([page, document, tmp_path / "index.html"])


def test_the_latest_report_is_the_one_written_last(tmp_path: Path) -> None:
    assert latest_report(tmp_path / "none") is None
    newer, _ = write_report(tmp_path, quiet_night(run_id="a"))
    older, _ = write_report(tmp_path, quiet_night(run_id="b"))
    os.utime(older, ns=(1, 1))
    assert latest_report(tmp_path) == newer


@pytest.mark.parametrize(
    ("changes", "status", "title", "sentence"),
    [
        ({}, "good", "Published snapshot 12", "Nothing changed."),
        (
            {"counts": {"evidence": 1204, "topics_created": 1, "merges": 2, "archived": 0}},
            "good",
            "Published snapshot 12",
            "1,204 observations ingested, 1 topic created and 2 topics merged away.",
        ),
        ({"warnings": ["one"]}, "warn", "Published snapshot 12, with 1 warning", "Nothing changed."),
        (
            {"warnings": ["one"], "checks": [{"name": "c3", "passed": False, "severity": "WARN"}]},
            "warn",
            "Published snapshot 12, with 2 warnings",
            "Nothing changed.",
        ),
        (
            {"snapshot": None, "checks": [{"name": "c2", "passed": False, "severity": "ERROR"}]},
            "bad",
            "Refused to publish",
            "Check c2 failed, so snapshot 11 is still served. Held back: nothing changed.",
        ),
        (
            {
                "snapshot": None,
                "previous_snapshot": None,
                "counts": {"merges": 1},
                "checks": [{"name": name, "passed": False, "severity": "error"} for name in ("c1", "c2", "c4")],
            },
            "bad",
            "Refused to publish",
            "Checks c1, c2 and c4 failed, so nothing is served yet. Held back: 1 topic merged away.",
        ),
        (
            {"snapshot": None},
            "bad",
            "Not published",
            "This run published no snapshot; snapshot 11 is still served.",
        ),
    ],
)
def test_the_verdict(changes: dict[str, Any], status: str, title: str, sentence: str) -> None:
    answer = verdict(summary(**changes))
    assert (answer.status, answer.title, answer.sentence) == (status, title, sentence)


def test_numbers_in_words() -> None:
    assert [number(n) for n in (0, 1234567, 2.0, 1234.5, 0.0123, None, float("nan"))] == [
        "0", "1,234,567", "2", "1,234.50", "0.012", NOT_KNOWN, NOT_KNOWN,
    ]  # fmt: skip
    assert [score(n) for n in (0.97314, None)] == ["0.973", NOT_KNOWN]
    assert [duration(n) for n in (0.0421, 1.25, 59.99, 74.6, 7265)] == [
        "42 ms", "1.2 s", "60.0 s", "1 min 15 s", "2 h 1 min",
    ]  # fmt: skip
    assert [listed(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [counted("merges", 1), counted("merges", 0), counted("fields_seen", 2)] == [
        "topic merged away", "topics merged away", "fields seen",
    ]  # fmt: skip


def test_times_are_in_utc() -> None:
    assert moment("2026-04-22T04:00:00+02:00") == "2026-04-22 02:00 UTC"
    assert moment(datetime(2026, 4, 22, 2, tzinfo=UTC)) == "2026-04-22 02:00 UTC"
    assert moment("last night") == "last night"
    assert moment(None) == NOT_KNOWN
