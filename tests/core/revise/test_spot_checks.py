"""Spot checks: which merges are asked for, and what verdicts on them mean."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.revise.spot_checks import CHECKS, DOUBTFUL, DRAWN, merge_checks, open_checks
from tests.core.frames import filled

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
AT_LEAST = 0.9


def decision(kind: str, topic: str, run: str = "r1", /, **payload: Any) -> dict[str, Any]:
    day = int(run[1:])
    return {
        "kind": kind, "topic_id": topic, "run_id": run, "at": BEGAN + timedelta(days=day), "scope": "user:aya",
        "shard": "s0", "payload_json": json.dumps(payload),
    }  # fmt: skip


def merged(topic: str, run: str = "r1", probability: float = 0.99, **more: Any) -> dict[str, Any]:
    return decision("merged", topic, run, survivor=f"{topic}-kept", probability=probability, weight=5.0, **more)


def judged(topic: str, verdict: str) -> dict[str, Any]:
    a, b = sorted((topic, f"{topic}-kept"))
    return decision("judged", a, "r9", a=a, b=b, verdict=verdict, actor="person")


def rejected(topic: str) -> list[dict[str, Any]]:
    return [decision("unmerged", topic, "r9", survivor=f"{topic}-kept", actor="person"), judged(topic, "different")]


def checks(*decisions: dict[str, Any]) -> pl.DataFrame:
    rows = [row | {"seq": seq} for seq, row in enumerate(decisions)]
    return merge_checks(filled(pl.DataFrame(rows), TRANSITIONS), AT_LEAST)


def run_of(size: int, run: str = "r1") -> list[dict[str, Any]]:
    """Merges of a run, each less probable than the one before."""
    return [merged(f"{run}-{at}", run, 0.999 - at / 10_000) for at in range(size)]


def strata(frame: pl.DataFrame) -> dict[str | None, int]:
    return dict(frame["drawn_from"].value_counts().iter_rows())


def test_the_most_doubtful_are_asked_for_and_a_sample_of_the_others() -> None:
    found = checks(*run_of(100))
    assert found.columns == list(CHECKS)
    assert strata(found) == {"doubtful": DOUBTFUL, "others": DRAWN, None: 100 - DOUBTFUL - DRAWN}
    doubtful = found.filter(pl.col("drawn_from") == "doubtful")["dropped"]
    assert set(doubtful) == {f"r1-{at}" for at in range(100 - DOUBTFUL, 100)}


def test_the_sample_does_not_depend_on_probability_or_order() -> None:
    places = [int(name[3:]) for name in checks(*run_of(400)).filter(pl.col("drawn_from") == "others")["dropped"]]
    assert np.mean(places) == pytest.approx(195, abs=4 * 400 / np.sqrt(12 * DRAWN))
    again = checks(*reversed(run_of(400))).filter(pl.col("drawn_from") == "others")["dropped"]
    assert {int(name[3:]) for name in again} == set(places)


def test_every_run_has_a_sample_of_its_own_and_the_newest_is_asked_first() -> None:
    found = checks(*run_of(60, "r1"), *run_of(60, "r2"))
    assert strata(found.filter(pl.col("run_id") == "r1")) == strata(found.filter(pl.col("run_id") == "r2"))
    asked = open_checks(found)
    assert asked.height == 2 * (DOUBTFUL + DRAWN)
    keys = [(run, kind) for (run, kind), _ in itertools.groupby(asked.select("run_id", "drawn_from").rows())]
    assert keys == [("r2", "doubtful"), ("r2", "others"), ("r1", "doubtful"), ("r1", "others")]


def test_merges_by_people_and_merges_across_scopes_are_not_asked_for() -> None:
    by_hand = merged("a", actor="person")
    apart = [merged("b"), decision("unmerged", "b", "r2", survivor="b-kept", actor="placements")]
    assert checks(by_hand, *apart).is_empty()


def test_a_verdict_ends_a_check_and_a_skip_puts_it_last() -> None:
    found = checks(*run_of(4), judged("r1-0", "same"), *rejected("r1-1"), judged("r1-3", "skip"))
    verdicts = dict(found.select("dropped", "verdict").iter_rows())
    assert verdicts == {"r1-0": "same", "r1-1": "different", "r1-2": None, "r1-3": "skip"}
    assert open_checks(found)["dropped"].to_list() == ["r1-2", "r1-3"]


def test_a_merge_that_was_undone_counts_as_wrong_and_its_successor_is_a_merge_of_its_own() -> None:
    found = checks(merged("a"), decision("unmerged", "a", "r2", survivor="a-kept", actor="person"), merged("a", "r3"))
    assert found.select("run_id", "verdict").rows() == [("r3", None), ("r1", "different")]


# Merges that today's model doubts


def features(level: float, weight: float) -> list[dict[str, Any]]:
    return [{"name": "field:owner", "value": level, "weight": weight}]


def model(run: str, weight: float) -> dict[str, Any]:
    weights = {"field:owner": [[-3.0, weight]] * 3}
    return decision("match_model_fitted", "", run, weights=weights, match_rate=0.1)


@pytest.mark.parametrize(
    ("weight", "rejections", "doubted"), [(4.0, 1, False), (3.99, 1, False), (-1.0, 1, True), (-1.0, 0, False)]
)
def test_after_a_rejection_merges_that_the_model_supports_less_are_doubted(
    weight: float, rejections: int, doubted: bool
) -> None:
    made = [merged(f"a{at}", features=features(1.0, 4.0)) for at in range(60)]
    sure = [merged(f"b{at}", features=features(0.0, -3.0)) for at in range(60)]
    wrong = [row for at in range(rejections) for row in rejected(f"b{at}")]
    found = checks(*made, *sure, *wrong, model("r1", 4.0), model("r2", weight))
    assert set(found.filter("doubted")["dropped"]) == ({f"a{at}" for at in range(60)} if doubted else set())
    if doubted:
        assert open_checks(found)["dropped"].head(60).str.starts_with("a").all()
        assert found.filter("doubted")["today"].max() == pytest.approx(0.5)


def test_a_merge_that_never_had_the_support_is_not_doubted_anew() -> None:
    weak = merged("a", probability=0.7, features=features(1.0, 4.0))
    weak["payload_json"] = weak["payload_json"].replace('"weight": 5.0', '"weight": 1.0')
    other = merged("b")
    assert not checks(weak, other, *rejected("b"), model("r1", 4.0), model("r2", -1.0))["doubted"].any()
