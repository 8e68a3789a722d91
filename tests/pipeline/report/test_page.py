"""The page of a run: content, escaping, and the same bytes for the same data."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from memstate_pipeline.report import render_report
from tests.pipeline.report.nights import (
    ARCHIVED,
    GROWTH,
    NOW,
    busy_night,
    quiet_night,
    section,
    summary,
    table,
)

pytestmark = pytest.mark.slow


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
    script = (
        "from memstate_pipeline.report import render_report; from tests.pipeline.report.nights import busy_night;"
        "print(render_report(busy_night()), end='')"
    )
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
