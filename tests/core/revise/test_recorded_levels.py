"""Agreement levels of recorded pairs, and how the last model scores old merges."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.model.step_frames import PAIRS
from memstate_core.revise.recorded_levels import levels, rescored, shown
from tests.core.revise.test_verdicts import FEATURES, ledger, merged, suggested, unmerged


def test_a_pair_has_the_features_with_which_it_was_shown_last() -> None:
    again = suggested("a", "b")
    again[2]["features"] = [{"name": "title", "value": 5.0, "weight": 1.0}, {"name": "rank", "value": 2.0, "weight": 1}]
    (row,) = shown(ledger(suggested("a", "b"), again, suggested("c", "d"))).filter(pl.col("a") == "a").to_dicts()
    assert [(feature["name"], feature["value"]) for feature in row["features"]] == [("title", 5), ("rank", 2)]


@pytest.mark.parametrize(("level", "stratum"), [(0, 0), (2, 0), (3, 1), (4, 1), (5, 2), (9, 2)])
def test_the_stratum_of_a_pair_is_that_of_its_title_level(level: int, stratum: int) -> None:
    pair = {"pair": 7, "features": [{"name": "title", "value": float(level), "weight": 1.0}]}
    rows = levels(pl.DataFrame([pair], schema={"pair": pl.UInt32, "features": PAIRS["features"]}))
    assert rows.select("pair", "name", "level", "stratum").rows() == [(7, "title", level, stratum)]


def merged_beside(dropped: str, survivor: str, partner: str) -> tuple[Any, ...]:
    kind, topic, payload = merged(dropped, survivor)
    return kind, topic, payload | {"partner": partner}


def test_a_merge_shows_its_pair_with_what_it_recorded() -> None:
    (row,) = shown(ledger(merged_beside("b", "a", "a"), unmerged("b", "a"))).to_dicts()
    assert (row["a"], row["b"]) == ("a", "b")
    assert [feature["name"] for feature in row["features"]] == [feature["name"] for feature in FEATURES]


def test_a_merge_supported_by_a_third_topic_says_nothing_about_its_pair() -> None:
    for made in (merged_beside("b", "a", "c"), merged("b", "a")):
        assert shown(ledger(made))["features"].to_list() == [None]


# Old pairs under the last model


def model(title: float, owner: float) -> tuple[Any, ...]:
    return "match_model_fitted", "", {"weights": {"title": [[title, title]] * 3, "owner": [[owner, owner]] * 3}}


def pairs(*rows: tuple[str, float, list[dict[str, Any]]]) -> pl.DataFrame:
    schema = {"scope": pl.String, "weight": pl.Float64, "features": PAIRS["features"]}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_a_pair_moves_by_the_change_of_the_weights_of_its_comparisons() -> None:
    features = [{"name": "title", "value": 1.0, "weight": 2.5}, {"name": "new", "value": 1.0, "weight": 9.0}]
    old = pairs(("user:aya", 5.0, features), ("user:aya", 1.0, []), ("user:ben", 4.0, features))
    last = ledger(model(0.0, 0.0), model(1.5, -1.0))
    assert rescored(old, last).to_list() == pytest.approx([4.0, 1.0, 4.0])
    assert rescored(old, ledger()).to_list() == [5.0, 1.0, 4.0]


def test_the_weight_is_that_of_the_stratum_of_the_titles() -> None:
    high = [{"name": "title", "value": 5.0, "weight": 1.0}, {"name": "rank", "value": 0.0, "weight": 0.0}]
    weights = {"title": [[0.0] * 6] * 3, "rank": [[0.0], [1.0], [2.0]]}
    last = ledger(("match_model_fitted", "", {"weights": weights}))
    assert rescored(pairs(("user:aya", 3.0, high)), last).to_list() == [3.0 - 1.0 + 2.0]
