"""Merges as lines of text: the reading where one is recorded, the features where none is."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_pipeline.cli.shared.output import show_lines
from memstate_pipeline.cli.shared.text import merge_lines

READING = "title agrees, price differs (12 vs 14); no other topic of the scope has the same title"


def merge(reading: str | None, partner: str | None = "kept") -> dict[str, Any]:
    dropped, kept = ({"id": name, "title": name.title()} for name in ("dropped", "kept"))
    features = [{"name": name, "value": 1.0, "weight": 2.0} for name in ("title", "summary", "rank", "time")]
    return {
        "id": "merge", "at": "2026-04-08T02:00:00Z", "dropped": dropped, "survivor": kept, "into": kept,
        "probability": 0.99, "evidence_ids": ["e"], "reason": "the same", "undone": False, "undone_at": None,
        "features": features, "reading": reading, "partner": partner,
    }  # fmt: skip


def test_the_reading_stands_in_place_of_the_features() -> None:
    lines = merge_lines([merge(READING)])
    assert lines[1:] == ["    Dropped [dropped] into Kept [kept]", f"    {READING}"]


def test_a_partner_that_is_not_the_survivor_is_named() -> None:
    assert merge_lines([merge(READING, partner="third")])[-1] == f"    {READING} (compared with third)"


@pytest.mark.parametrize("partner", [None, "kept", "third"])
def test_without_a_reading_the_strongest_features_are_listed(partner: str | None) -> None:
    assert merge_lines([merge(None, partner)])[2:] == ["    title 1 (+2), summary 1 (+2), rank 1 (+2)"]


def test_control_characters_of_values_are_made_visible(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines(merge_lines([merge("colour differs (\x1b[31mred\u202e vs \x9b)")]))
    assert capsys.readouterr().out.splitlines()[2] == r"    colour differs (\x1b[31mred\u202e vs \x9b)"
