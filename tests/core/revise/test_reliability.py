"""Reliability: verdicts beside the probabilities of their pairs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.revise.reliability import BANDS, RELIABILITY, band, reliability
from tests.core.revise.test_verdicts import judged, ledger, merged, suggested, unmerged


def shown(a: str, b: str, probability: float) -> tuple[Any, ...]:
    kind, topic, payload = suggested(a, b)
    return kind, topic, payload | {"probability": probability}


def by_hand(dropped: str, survivor: str) -> tuple[Any, ...]:
    kind, topic, payload = merged(dropped, survivor)
    return kind, topic, payload | {"probability": 1.0, "actor": "person"}


@pytest.mark.parametrize("start", BANDS)
def test_a_band_holds_its_lower_end_and_not_the_next(start: float) -> None:
    ends = pl.DataFrame({"p": [start, start + 0.005, start - 1e-9]}).select(band(pl.col("p"))).to_series()
    below = [lower for lower in BANDS if lower < start]
    assert ends.to_list() == [start, start, below[-1] if below else None]


def test_verdicts_are_counted_by_the_last_probability_that_the_model_gave() -> None:
    rows = [shown("a", f"b{at}", 0.6) for at in range(4)] + [shown("a", "b0", 0.7), shown("a", "c", 0.92)]
    verdicts = [judged("a", "b0", "same"), judged("a", "b1", "different"), judged("a", "b2", "skip")]
    found = reliability(ledger(*rows, *verdicts, by_hand("c", "a"), judged("a", "c", "same")))
    assert found.columns == list(RELIABILITY)
    assert found.rows() == [(0.9, 1, 0.92, 1.0), (0.5, 2, 0.65, 0.5)]


def test_verdicts_on_merges_count_too() -> None:
    rejected = [unmerged("b", "a"), judged("a", "b", "different")]
    assert reliability(ledger(merged("b", "a"), *rejected)).rows() == [(0.99, 1, 0.99, 0.0)]


def test_without_verdicts_there_is_nothing() -> None:
    assert reliability(ledger(shown("a", "b", 0.6))).rows() == []
