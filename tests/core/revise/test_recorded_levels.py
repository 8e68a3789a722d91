"""Agreement levels of recorded pairs: what verdicts teach, and how the last model scores old merges."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.model.frames import PAIRS
from memstate_core.revise.recorded_levels import rescored, verdict_levels
from tests.core.revise.test_verdicts import FEATURES, judged, ledger, merged, suggested, unmerged


def test_verdicts_are_read_with_what_was_shown_last() -> None:
    shown = suggested("a", "b")
    shown[2]["features"] = [{"name": "title", "value": 5.0, "weight": 1.0}, {"name": "rank", "value": 2.0, "weight": 1}]
    rows = verdict_levels(ledger(suggested("a", "b"), shown, judged("a", "b", "same"), judged("c", "d", "same")))
    assert rows.rows() == [("user:aya", "title", 5, 2, True), ("user:aya", "rank", 2, 2, True)]


@pytest.mark.parametrize(("level", "stratum"), [(0, 0), (2, 0), (3, 1), (4, 1), (5, 2), (9, 2)])
def test_the_stratum_of_a_verdict_is_that_of_its_title_level(level: int, stratum: int) -> None:
    shown = suggested("a", "b")
    shown[2]["features"] = [{"name": "title", "value": float(level), "weight": 1.0}]
    rows = verdict_levels(ledger(shown, judged("a", "b", "different")))
    assert rows.rows() == [("user:aya", "title", level, stratum, False)]


def test_a_skip_and_a_pair_never_shown_teach_nothing() -> None:
    assert verdict_levels(ledger(suggested("a", "b"), judged("a", "b", "skip"))).is_empty()
    assert verdict_levels(ledger(judged("a", "b", "same"))).is_empty()
    assert verdict_levels(ledger()).schema == {
        "scope": pl.String, "name": pl.String, "level": pl.Int64, "stratum": pl.Int64, "same": pl.Boolean
    }  # fmt: skip


def merged_beside(dropped: str, survivor: str, partner: str) -> tuple[Any, ...]:
    kind, topic, payload = merged(dropped, survivor)
    return kind, topic, payload | {"partner": partner}


def test_a_verdict_on_a_merge_is_read_with_what_the_merge_recorded() -> None:
    rejected = [unmerged("b", "a"), judged("a", "b", "different")]
    rows = verdict_levels(ledger(merged_beside("b", "a", "a"), *rejected))
    assert rows.select("name", "same").rows() == [(feature["name"], False) for feature in FEATURES]


def test_a_merge_supported_by_a_third_topic_says_nothing_about_its_pair() -> None:
    rejected = [unmerged("b", "a"), judged("a", "b", "different")]
    assert verdict_levels(ledger(merged_beside("b", "a", "c"), *rejected)).is_empty()
    assert verdict_levels(ledger(merged("b", "a"), *rejected)).is_empty()


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
