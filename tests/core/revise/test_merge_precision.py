"""The precision of a run's merges, and its interval, from the verdicts on spot checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.merge_precision import estimates
from memstate_core.revise.spot_checks import DOUBTFUL, DRAWN
from tests.core.revise.test_spot_checks import checks, judged, merged, rejected, run_of


def precision(found: pl.DataFrame) -> dict[str, Any]:
    (row,) = estimates(found).to_dicts()
    return row


def test_without_verdicts_nothing_is_known() -> None:
    row = precision(checks(*run_of(50)))
    assert (row["merges"], row["asked"], row["answered"]) == (50, DOUBTFUL + DRAWN, 0)
    assert (row["precision"], row["low"], row["high"]) == (None, 0.0, 1.0)


def test_a_run_whose_merges_are_all_checked_is_known_exactly() -> None:
    verdicts = [judged(f"r1-{at}", "same") for at in range(3, 30)]
    wrong = [row for at in range(3) for row in rejected(f"r1-{at}")]
    row = precision(checks(*run_of(30), *verdicts, *wrong))
    assert (row["answered"], row["wrong"]) == (30, 3)
    assert (row["precision"], row["low"], row["high"]) == pytest.approx((0.9, 0.9, 0.9))


def test_the_estimate_weighs_both_strata_by_their_size() -> None:
    found = checks(*run_of(110))
    asked = found.filter(pl.col("drawn_from").is_not_null())
    doubtful = asked.filter(pl.col("drawn_from") == "doubtful")["dropped"].to_list()
    others = asked.filter(pl.col("drawn_from") == "others")["dropped"].to_list()
    wrong = [row for name in [*doubtful[:5], *others[:2]] for row in rejected(name)]
    right = [judged(name, "same") for name in [*doubtful[5:], *others[2:]]]
    row = precision(checks(*run_of(110), *wrong, *right))
    assert row["precision"] == pytest.approx((5 + 100 * 18 / 20) / 110)
    # the exact interval of 18 in 20 (Clopper and Pearson, 1934), from tables
    assert row["low"] == pytest.approx((5 + 100 * 0.6830) / 110, abs=1e-4)
    assert row["high"] == pytest.approx((5 + 100 * 0.9877) / 110, abs=1e-4)


def test_doubtful_merges_without_a_verdict_widen_the_interval() -> None:
    row = precision(checks(*run_of(DOUBTFUL), judged("r1-0", "same"), *rejected("r1-1")))
    assert row["precision"] is None
    assert (row["low"], row["high"]) == pytest.approx((0.1, 0.9))


def test_others_without_a_verdict_count_as_wrong_and_as_right() -> None:
    asked = checks(*run_of(110)).filter(pl.col("drawn_from") == "others")["dropped"].to_list()
    some = [judged(name, "same") for name in asked[:10]] + rejected(asked[10])
    row = precision(checks(*run_of(110), *some))
    # the exact bounds of 10 and of 19 in 20 (Clopper and Pearson, 1934), from tables
    assert row["precision"] is None
    assert row["low"] == pytest.approx(100 * 0.2720 / 110, abs=1e-4)
    assert row["high"] == pytest.approx((DOUBTFUL + 100 * 0.9987) / 110, abs=1e-4)


@pytest.mark.parametrize("only_wrong", [False, True])
def test_the_interval_covers_the_truth_as_often_as_it_says(only_wrong: bool) -> None:
    """Also where people answer for what is wrong alone, as those do who undo what they come across."""
    chance, runs, merges, wrong = np.random.default_rng(5), 200, 100, 15
    made = [merged(f"r{run}-{at}", f"r{run}") for run in range(runs) for at in range(merges)]
    false = {f"r{run}-{at}" for run in range(runs) for at in chance.choice(merges, wrong, replace=False)}
    asked = checks(*made).filter(pl.col("drawn_from").is_not_null())["dropped"]
    confirmed = [] if only_wrong else [judged(name, "same") for name in asked if name not in false]
    answers = [*confirmed, *(row for name in asked if name in false for row in rejected(name))]
    found = estimates(checks(*made, *answers))
    assert found.height == runs
    covered = found.filter(pl.lit(1 - wrong / merges).is_between("low", "high")).height / runs
    assert covered >= 0.93
    if not only_wrong:
        assert found.select(pl.col("high") - pl.col("low")).to_series().max() < 0.45
