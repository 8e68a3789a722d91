"""The files of a report: written whole or not at all, the latest found."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from memstate_pipeline.report import latest_report, write_report
from tests.pipeline.report.nights import (
    ARCHIVED,
    NOW,
    busy_night,
    quiet_night,
    table,
)

pytestmark = pytest.mark.slow


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
