"""`reports/index.html`: every page, the newest first, with what came of its run."""

from __future__ import annotations

import os
import re
from pathlib import Path

from memstate_pipeline.report.index import INDEX, write_index
from memstate_pipeline.report.latest import latest_report
from memstate_pipeline.report.page import render_report, write_report
from tests.docs.html import Page
from tests.pipeline.report.nights import busy_night, quiet_night


def written(folder: Path, run_id: str, at: int, **summary: object) -> Path:
    page = write_report(folder, quiet_night(run_id=run_id, **summary))[0]
    os.utime(page, (at, at))
    return page


def test_pages_are_listed_newest_first_with_what_came_of_their_runs(tmp_path: Path) -> None:
    written(tmp_path, "r 1", 100, shard="s0", snapshot="s0/1", warnings=["<b>look</b>"])
    written(tmp_path, "r2", 300, shard="s1", snapshot=None, now="2026-04-23T02:00:00Z")
    (tmp_path / "r3-s0.html").write_text("")
    os.utime(tmp_path / "r3-s0.html", (200, 200))
    listed = write_index(tmp_path)
    assert Page(listed).links == ["r2-s1.html", "r3-s0.html", "r%201-s0.html"]
    text = re.sub(r"<[^>]+>", " ", listed.read_text())
    assert "3 runs have a page, the newest first." in text
    for said in ("Not published", "2026-04-23 02:00 UTC", "r3-s0.json is missing or damaged", "with 1 warning"):
        assert said in text
    assert "script" not in listed.read_text()
    assert latest_report(tmp_path) == tmp_path / "r2-s1.html", "the list is no page of a run"


def test_each_page_that_is_written_is_in_the_list_and_links_to_it(tmp_path: Path) -> None:
    page = write_report(tmp_path, busy_night())[0]
    assert Page(tmp_path / INDEX).links == [page.name]
    assert INDEX in Page(page).links


def test_every_table_has_a_caption_and_headers_with_a_scope(tmp_path: Path) -> None:
    write_report(tmp_path, busy_night())
    for html in (render_report(busy_night()), (tmp_path / INDEX).read_text()):
        tables = re.findall(r"<table.*?</table>", html, flags=re.DOTALL)
        assert tables
        assert all(re.search(r"<caption>[^<]+</caption>", table) for table in tables)
        headers = [header for table in tables for header in re.findall(r"<th\b[^>]*>", table)]
        assert all('scope="' in header for header in headers)
