"""Pairs that are equal by chance reach the reviewer, and the night says why they were not merged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.core.revise.matching.namesakes import KINDS, noted_again
from tests.pipeline.conftest import NIGHT, run_memstate


@pytest.mark.slow
def test_a_night_names_pairs_that_chance_explains_and_asks_for_them(tmp_path: Path) -> None:
    home, dump = tmp_path / "home", tmp_path / "dump.jsonl"
    home.mkdir()
    (home / "memstate.toml").write_text('[embedding]\nmodel = "hashing"\n')
    made = noted_again(KINDS["people of two fields"], 1500, 0.0, seed=11)
    row = {"observed_at": "2026-01-01", "placement": "new_topic", "scope": {"type": "project", "id": "list"}}
    with dump.open("w") as file:
        for number, topic in enumerate(made.topics):
            fields = [{"name": name, "value": value} for name, value in topic["fields"].items()]
            given = row | {"observation_id": f"p{number}", "title": topic["title"], "fields": fields}
            file.write(json.dumps(given) + "\n")
    assert run_memstate(home, "import", str(dump), "--now", NIGHT).code == 0
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json").document
    (page,) = (home / "reports").glob("*-s0.json")
    report = json.loads(page.read_text())
    (warning,) = [each for each in report["warnings"] if "agree in as much by chance" in each]
    (said,) = re.findall(r"^likely pairs left to review, not merged: ([\d,]+), since different topics", warning)
    count = int(said.replace(",", ""))
    assert count >= 5
    assert night["counts"]["merges"] == 0
    asked = run_memstate(home, "review", "--json", "--limit", "1000").document
    equal = [pair for pair in asked["pairs"] if pair["a"]["title"] == pair["b"]["title"]]
    assert len(equal) >= count
