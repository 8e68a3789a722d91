"""Made records of several sources as labelled directories."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def made_sources(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("made_sources")


def written(folder: Path) -> tuple[dict[str, Any], list[list[str]]]:
    rows = [json.loads(line) for line in (folder / "observations.jsonl").read_text().splitlines()]
    pairs = [line.split(",") for line in (folder / "pairs.csv").read_text().splitlines()]
    return {row["observation_id"]: row for row in rows}, pairs


def test_each_kind_has_things_that_several_sources_list(made_sources: ModuleType, tmp_path: Path) -> None:
    made_sources.main([str(tmp_path), "--seeds", "4"])
    assert {folder.name for folder in tmp_path.iterdir()} == {f"{kind}4" for kind in made_sources.KINDS}
    for kind in made_sources.KINDS:
        rows, pairs = written(tmp_path / f"{kind}4")
        across = [rows[a]["source_uri"] != rows[b]["source_uri"] for a, b in pairs]
        assert sum(across) > 300
        assert all(across) is (kind not in ("events", "papers"))  # a calendar and a scraped source repeat some


@pytest.mark.slow
def test_a_seed_gives_the_same_records(made_sources: ModuleType, tmp_path: Path) -> None:
    for name in ("one", "other"):
        made_sources.main([str(tmp_path / name), "--seeds", "5"])
    for kind in made_sources.KINDS:
        assert written(tmp_path / "one" / f"{kind}5") == written(tmp_path / "other" / f"{kind}5")


def test_editions_share_a_title_within_a_shop(made_sources: ModuleType, tmp_path: Path) -> None:
    made_sources.main([str(tmp_path), "--seeds", "6"])
    rows, _ = written(tmp_path / "books6")
    titles = [(row["source_uri"], row["title"]) for row in rows.values()]
    assert len(titles) - len(set(titles)) > 100


def test_one_calendar_writes_the_times_of_a_series_in_two_ways(made_sources: ModuleType, tmp_path: Path) -> None:
    made_sources.main([str(tmp_path), "--seeds", "6"])
    rows, _ = written(tmp_path / "events6")
    desk = [row for row in rows.values() if row["source_uri"].endswith("b")]
    zones: dict[str, set[str]] = {}
    for row in desk:
        zones.setdefault(row["title"], set()).add(row["fields"][0]["value"][-3:])
    assert sum(found == {"UTC", "EST"} for found in zones.values()) > 50
